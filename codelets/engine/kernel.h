/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the built-in ops, and the few things tasks asks of them. A kernel knows views and attributes only. */
#ifndef CODELETS_KERNEL_H
#define CODELETS_KERNEL_H

#include "gpu.h"
#include "trama_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trama_kernel {
    void (*cpu)(const trama_call *call);
    void (*cuda)(const trama_call *call, const gpu *g); /* views hold device pointers; NULL: there is none */
} trama_kernel;

/* The kernel of a built-in op, from the table that expands from ops.def; NULL for others. */
const trama_kernel *kernel_of(const trama_op *op);

/* Runs an op's kernel, which is kernel_of(call->op), or the one that the user's own op was defined with. Only such one
 * can fail: its results are then NaN, of integers 0, and *message, valid until the thread's next call, says why. */
trama_status kernel_run(const trama_kernel *kernel, const trama_call *call, const char **message);

/* How something is added: state = keep * state + factor * something; keep is 0 or 1, and 0 reads no state. */
typedef struct kernel_addition {
    double keep, factor;
} kernel_addition;

/* Adds the result of a call to what is in its out[0], in one pass. NULL where the op has no such kernel. */
typedef void (*kernel_adder)(const trama_call *call, kernel_addition how);
kernel_adder kernel_adder_of(const trama_op *op, trama_dtype dtype);

/* Whether a call adds in[1] to in[0], in place; and how, which may stand in its operands, so that it is asked when it
 * runs. */
bool kernel_is_addition(const trama_call *call);
kernel_addition kernel_addition_now(const trama_call *call);

/* destination = source, element by element; equal extents, dtypes and ndim, any strides. */
void kernel_copy(const trama_view *destination, const trama_view *source);

/* How partial values are combined: sum, average, maximum, minimum (the order of trama_reduce). */
typedef enum { COMBINE_SUM, COMBINE_MAX, COMBINE_MIN } kernel_combine;

/* destination = scale * (sources[0] op sources[1] op ... sources[n-1]), in this order for every element, whatever the
 * strides; equal extents and dtypes; n >= 1; destination may be one of the sources (same strides). */
void kernel_reduce(const trama_view *destination, int n, const trama_view *sources, kernel_combine combine,
                   double scale);

/* Sets every element to value (cast to the dtype; infinities for integers are their extremes). */
void kernel_fill(const trama_view *destination, double value);

/* ---- The same on a GPU, with CUDA only: views hold device pointers, and the work is enqueued on g->stream -------- */

void gpu_copy(const trama_view *destination, const trama_view *source, const gpu *g);
void gpu_reduce(const trama_view *destination, int n, const trama_view *sources, kernel_combine combine, double scale,
                const gpu *g);
void gpu_fill(const trama_view *destination, double value, const gpu *g);

/* Ends the process with a message that names the call, the bytes it takes and those free, where CUDA has reported an
 * error, be it of an earlier one. A call without an op is a change of layout. */
void gpu_check(const trama_call *call);

/* Pointwise calls, one after the other, as work_compute runs them: before the first, *sum is reduced from terms (with
 * n_terms > 0) as by gpu_reduce, and only calls read it. */
typedef struct kernel_chain {
    int n_calls;
    const trama_call *calls;
    const unsigned *inner; /* [n_calls] bit o: result o is read by later calls alone, and not written; NULL: none is */
    int n_terms;
    const trama_view *sum, *terms; /* [n_terms] */
    kernel_combine combine;
    double scale;
} kernel_chain;

/* Runs them in one kernel, in which every element is read and written once, with the bits of one by one. False, and
 * nothing is done, where something in it is not for one kernel: ops of one's own, casts, element types that are not
 * floats or not the same, results of unlike extents, more than fits its registers. */
bool gpu_chain(const kernel_chain *chain, const gpu *g);

/* The results of a product are added to what is in out[0]; as kernel_adder. */
void gpu_matmul_add(const trama_call *call, kernel_addition how, const gpu *g);

/* Runs a product, and of the calls behind it as many as the same kernel can do: the addition of a row and relu, in this
 * order. Nobody but the next call reads the results between, which are not written. Returns how many of more it has
 * run. */
int gpu_matmul_then(const trama_call *matmul, int n_more, const trama_call *more, const gpu *g);

/* ---- BLAS ------------------------------------------------------------------------------------ */

/* Makes the BLAS run the kernels that this CPU can, single-threaded inside tasks. allow_reselect false: only look.
 * Returns NULL, or a static message for the user with the remedy where it stays slow. */
const char *blas_start(bool allow_reselect);
void blas_stop(void); /* restores the thread count of the host */

/* Between the two: true, single-threaded; false, the host's number of threads, until then. One thread at a time. */
void blas_awake(bool awake);

/* Around each call of the BLAS. Where its threads are OpenMP's, their number is each thread's own, and only that of the
 * calling one changes, until it leaves. */
int blas_enter(void);
void blas_leave(int before);

const char *blas_kernel_name(void); /* "SkylakeX", or "unknown" */

/* Address space that each thread takes at its first call of the BLAS, and without which that does not return; 0 where it
 * is not known to. */
size_t blas_bytes(void);

#ifdef __cplusplus
}
#endif

#endif
