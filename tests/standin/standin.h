/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for CUDA's run time, cuBLASLt and NCCL, for tests on machines without a GPU: what its files share. It is a
 * library that comes before NVIDIA's in a test's link order, and it is never installed. It knows nothing of Trama.
 * The environment says what machine it plays:
 *   TRAMA_STANDIN_GPUS     how many GPUs there are (1); CUDA_VISIBLE_DEVICES chooses among them
 *   TRAMA_STANDIN_MEMORY   bytes of memory of each (1 GiB)
 *   TRAMA_STANDIN_TAKEN    of which others have taken so many (0)
 *   TRAMA_STANDIN_EXCLUSIVE  a folder: GPUs are in compute mode EXCLUSIVE_PROCESS among the processes that name it
 *   TRAMA_STANDIN_ASYNC    1: work of a stream is done later, in a thread of its own; 0: at once
 *   TRAMA_STANDIN_FAIL     what fails, as "launch:100,malloc:5": the 100th launch loses the device, the 5th cudaMalloc
 *                          finds no memory; copy, blas, nccl and graph likewise
 *   TRAMA_STANDIN_PATIENCE seconds that members of a communicator wait for each other (10)
 *   TRAMA_STANDIN_ORDER    the order of threads: forward, reverse, or a number (simt.h)
 * Memory of a device can be touched only while work of the stand-in does so: host code that does, kernels beyond what
 * was allocated or in another GPU's memory, and copies of the wrong kind end the process with a message. */
#ifndef STANDIN_STANDIN_H
#define STANDIN_STANDIN_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

namespace standin
{
enum { MOST_GPUS = 16 };

[[noreturn]] void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

int64_t setting(const char *name, int64_t usual);

int gpus(void);     /* that are visible */
int board(int gpu); /* its number without CUDA_VISIBLE_DEVICES */
int current(void);  /* the calling thread's GPU */

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Whether TRAMA_STANDIN_FAIL wants this call of `what` to fail; counts the calls. */
bool fails(const char *what);

/* From now on every call answers this. */
void lose(cudaError_t why);

/* The result of a function of the run time; an error becomes the last one. */
cudaError_t answer(const std::function<cudaError_t()> &call);

/* The same for a function that needs a context: the first opens one on the thread's GPU. */
cudaError_t answer_here(const std::function<cudaError_t()> &call);

/* Whether the process has a context on a GPU. simt_has_context is the same for programs in C. */
bool has_context(int gpu);

/* ---- Memory ---------------------------------------------------------------------------------- */

int gpu_of(const void *pointer); /* whose memory it is in; -1: none's */

cudaError_t device_malloc(void **pointer, size_t bytes);
void device_free(void *pointer);
void device_forget(int gpu); /* frees all of it */
void device_room(int gpu, size_t *free, size_t *total);

/* Ends the process unless all bytes lie in one allocation of a device. */
void check_device(const char *call, const void *pointer, size_t bytes);
/* And unless they are no device's. */
void check_host(const char *call, const void *pointer);

/* As long as it lives, its thread can touch memory of these GPUs. */
class opened
{
  public:
    explicit opened(unsigned mask);
    ~opened();
    opened(const opened &) = delete;
    opened &operator=(const opened &) = delete;
};
unsigned reach(int gpu);             /* itself and the peers that it may access, as a mask */
bool enable_peer(int gpu, int peer); /* false: it was */
bool is_pinned(const void *pointer, size_t bytes);

/* ---- Streams --------------------------------------------------------------------------------- */

struct stream;
stream *stream_of(cudaStream_t handle); /* NULL: the current GPU's own */
int gpu_of(const stream *s);

/* Does work after what was submitted before. */
void submit(stream *s, std::function<void()> work);
/* From now on its work is done in its own thread, since some of it waits for other streams. */
void make_late(stream *s);
void wait_for(stream *s);
void wait_for_all(int gpu);
bool is_late(const stream *s);

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* Work that streams keep while they are captured, for the launches of the graph (graph.cpp): a node is done after
 * others, which stand before it. */
struct node {
    std::function<void()> work;
    std::vector<size_t> after;
};
struct recording {
    std::vector<node> nodes;
    std::vector<stream *> streams; /* that record in it */
    bool ended = false;
};
/* A place in a recording: behind these nodes. */
struct moment {
    std::shared_ptr<recording> of;
    std::vector<size_t> after;
};
void begin_recording(stream *s);
moment end_recording(stream *s, bool *joined); /* of is NULL: it did not begin one; joined: no other stream is left */
moment recorded_so_far(stream *s);             /* of is NULL: it does not record */
void record_after(stream *s, const moment &m); /* it records from now on, where it did not, in the recording of m */
bool is_recording(stream *s);
bool records_here(void); /* the calling thread has begun a recording that has not ended */
} // namespace standin

#endif
