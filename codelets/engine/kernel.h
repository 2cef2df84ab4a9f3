/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the built-in ops, and the calls by which tasks runs them. A kernel knows views and attributes only. */
#ifndef CODELETS_KERNEL_H
#define CODELETS_KERNEL_H

#include "gpu.h"
#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How something is added: state = keep * state + factor * something; keep is 0 or 1, and 0 reads no state. */
typedef struct kernel_addition {
    double keep, factor;
} kernel_addition;

/* cuda functions get views with device pointers, and are NULL where there is none. */
typedef struct trama_kernel {
    void (*cpu)(const trama_call *call);
    void (*cuda)(const trama_call *call, const gpu *g);
    /* Of products alone, else NULL. Add the result, which is of a float type, to the content of out[0], in one pass. */
    void (*cpu_add)(const trama_call *call, kernel_addition how);
    void (*cuda_add)(const trama_call *call, kernel_addition how, const gpu *g);
    /* Runs a product and the first of the n_more calls behind it, which alone read it; inner [n_more]: as in
     * kernel_chain. Returns how many of these it has run: 0, and nothing is done, where there is no kernel for the
     * product and even one of them. */
    int (*cuda_then)(const trama_call *call, int n_more, const trama_call *more, const unsigned *inner, const gpu *g);
} trama_kernel;

/* The kernel of a built-in op, from the table that expands from ops.def; NULL for others. */
const trama_kernel *kernel_of(const trama_op *op);

/* Runs an op's kernel: kernel_of(call->op), or the CPU function of a user's own op. The latter may fail; a built-in one
 * answers E_MEMORY where the system refuses its scratch memory (scratch.h). The results but updated states are then NaN
 * (integers 0), and *message, valid until the thread's next call, gives the reason. */
trama_status kernel_run(const trama_kernel *kernel, const trama_call *call, const char **message);

/* Runs kernel->cpu_add. E_MEMORY as of kernel_run; the state is then as before. */
trama_status kernel_add(const trama_kernel *kernel, const trama_call *call, kernel_addition how, const char **message);

/* How a call adds in[1] to in[0], by its op's trama_addition: found when the call runs, since its operands may hold the
 * factors. */
kernel_addition kernel_addition_now(const trama_call *call);

/* destination = source, element by element; equal extents, dtypes and ndim, any strides. */
void kernel_copy(const trama_view *destination, const trama_view *source);

/* The same of n elements in a row, whose steps are in elements. */
void kernel_copy_row(trama_dtype dtype, int64_t n, void *to, int64_t to_step, const void *from, int64_t from_step);

/* The combination of terms. An average is a sum with a scale. */
typedef enum { COMBINE_SUM, COMBINE_MAX, COMBINE_MIN } kernel_combine;

/* destination = scale * (sources[0] op sources[1] op ... sources[n-1]), in this order for every element; equal extents
 * and dtypes, any strides; n >= 1; destination may be one of the sources (same strides). */
void kernel_reduce(const trama_view *destination, int n, const trama_view *sources, kernel_combine combine,
                   double scale);

/* Sets every element to value, cast to the dtype; infinities become the extremes of integers. */
void kernel_fill(const trama_view *destination, double value);

/* ---- The same on a GPU, with CUDA only: views hold device pointers, and the work is enqueued on g->stream -------- */

void gpu_copy(const trama_view *destination, const trama_view *source, const gpu *g);
void gpu_reduce(const trama_view *destination, int n, const trama_view *sources, kernel_combine combine, double scale,
                const gpu *g);
void gpu_fill(const trama_view *destination, double value, const gpu *g);

/* Ends the process if CUDA has reported an error of this call or an earlier one. The message names the call, the bytes
 * that it takes, and the free bytes. A call without an op is a change of layout. */
void gpu_check(const trama_call *call);

/* Pointwise calls, one after the other, as work_compute runs them. With n_terms > 0 *sum is reduced from the terms
 * before the first call, as by gpu_reduce, and only the calls read it. */
typedef struct kernel_chain {
    int n_calls;
    const trama_call *calls;
    const unsigned *inner; /* [n_calls] bit o: only later calls read result o, so it is not written; NULL: all are */
    int n_terms;
    const trama_view *sum, *terms; /* [n_terms] */
    kernel_combine combine;
    double scale;
    bool headed; /* for a kernel with a chain behind it: *sum is its value, which has no memory; false for gpu_chain */
} kernel_chain;

/* Runs a FUSED_CHAIN (fused.h) in one kernel, which reads and writes each element once and gives the bits of one kernel
 * per call. The type of its values is that of the first result. Returns false and does nothing where the chain has more
 * operands, slots or dims than the kernel. */
bool gpu_chain(const kernel_chain *chain, const gpu *g);

/* ---- BLAS ------------------------------------------------------------------------------------ */

/* Makes the BLAS run the fastest kernels that this CPU has, with one thread. allow_reselect false: keeps its kernels.
 * Returns NULL, or a static message for the user with the remedy where the kernels are slow. */
const char *blas_start(bool allow_reselect);
void blas_stop(void); /* restores the thread count of the host */

/* Between blas_start and blas_stop: true sets one thread, false the host's number. For one calling thread at a time. */
void blas_awake(bool awake);

/* Called before and after each call of the BLAS. Where its threads are OpenMP's, each calling thread has its own number
 * of them: blas_enter sets it to 1 and returns the number before, which blas_leave restores. */
int blas_enter(void);
void blas_leave(int before);

const char *blas_kernel_name(void); /* "SkylakeX", or "unknown" */

/* Bytes of address space that n threads at a time need for the BLAS, beside those that it has reserved; 0: not known.
 * A call that cannot get them does not return. */
size_t blas_bytes(int n);

/* Lets the BLAS take them now, where it can, and keep them. */
void blas_reserve(int n);

#ifdef __cplusplus
}
#endif

#endif
