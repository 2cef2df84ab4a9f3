/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives among GPUs, by NCCL, on the worker's own stream. It knows communicators and buffers, not ranks. */
#include "work_gpu.h"

#if TRAMA_HAVE_CUDA
#include "base.h"

#if TRAMA_HAVE_NCCL
#include <cuda_runtime_api.h>
#include <nccl.h>

static const char *const names[] = {[COLLECTIVE_ALL_GATHER] = "all-gather",
                                    [COLLECTIVE_ALL_TO_ALL] = "all-to-all",
                                    [COLLECTIVE_BROADCAST] = "broadcast",
                                    [COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
                                    [COLLECTIVE_ALL_REDUCE] = "all-reduce"};
/* An element as units of a type that NCCL has. It sums no 16-bit integers, and moves their bytes. */
static const struct unit {
    ncclDataType_t type;
    int in_element;
} units[TRAMA_N_DTYPES] = {
    [TRAMA_F32] = {ncclFloat32, 1}, [TRAMA_F64] = {ncclFloat64, 1}, [TRAMA_I32] = {ncclInt32, 1},
    [TRAMA_I64] = {ncclInt64, 1},   [TRAMA_U8] = {ncclUint8, 1},    [TRAMA_BF16] = {ncclBfloat16, 1},
    [TRAMA_F16] = {ncclHalf, 1},    [TRAMA_BOOL] = {ncclUint8, 1},  [TRAMA_I8] = {ncclInt8, 1},
    [TRAMA_U32] = {ncclUint32, 1},  [TRAMA_U64] = {ncclUint64, 1},  [TRAMA_I16] = {ncclUint8, 2},
    [TRAMA_U16] = {ncclUint8, 2},   [TRAMA_C64] = {ncclFloat32, 2}, [TRAMA_C128] = {ncclFloat64, 2}};
static const ncclRedOp_t operations[] = {[COMBINE_SUM] = ncclSum, [COMBINE_MAX] = ncclMax, [COMBINE_MIN] = ncclMin};

/* One call of NCCL. */
typedef struct exchange {
    const collective *c;
    char *to;
    const char *from;
    size_t count, bytes; /* units and bytes that each member gives */
    ncclDataType_t type;
    ncclRedOp_t operation;
    cudaStream_t stream;
} exchange;

static ncclResult_t all_gather(const exchange *x)
{
    return ncclAllGather(x->from, x->to, x->count, x->type, x->c->comm, x->stream);
}

static ncclResult_t all_to_all(const exchange *x)
{
    ncclResult_t result = ncclGroupStart(), end;
    for (int i = 0; i < x->c->n && !result; i++) {
        result = ncclSend(x->from + (size_t)i * x->bytes, x->count, x->type, i, x->c->comm, x->stream);
        if (!result)
            result = ncclRecv(x->to + (size_t)i * x->bytes, x->count, x->type, i, x->c->comm, x->stream);
    }
    end = ncclGroupEnd();
    return result ? result : end;
}

static ncclResult_t broadcast(const exchange *x)
{
    return ncclBroadcast(x->from, x->to, x->count, x->type, x->c->root, x->c->comm, x->stream);
}

static ncclResult_t reduce_scatter(const exchange *x)
{
    return ncclReduceScatter(x->from, x->to, x->count, x->type, x->operation, x->c->comm, x->stream);
}

static ncclResult_t all_reduce(const exchange *x)
{
    return ncclAllReduce(x->from, x->to, x->count, x->type, x->operation, x->c->comm, x->stream);
}

static ncclResult_t (*const calls[])(const exchange *x) = {[COLLECTIVE_ALL_GATHER] = all_gather,
                                                           [COLLECTIVE_ALL_TO_ALL] = all_to_all,
                                                           [COLLECTIVE_BROADCAST] = broadcast,
                                                           [COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
                                                           [COLLECTIVE_ALL_REDUCE] = all_reduce};

/* The other members wait on their GPUs for a call that this one will never make: the job ends. */
static _Noreturn void end_job(const work *w, ncclResult_t result)
{
    ncclCommAbort(w->collective->comm);
    fatal("%s of %lld elements %s among %d GPUs: NCCL reports: %s", names[w->collective->kind],
          (long long)w->collective->count, trama_dtype_name(w->views[0].dtype), w->collective->n,
          ncclGetErrorString(result));
}

void work_cuda_collective(const work *w, const gpu *g)
{
    const collective *c = w->collective;
    const trama_dtype dtype = w->views[0].dtype;
    const exchange x = {.c = c,
                        .to = w->views[0].data,
                        .from = w->views[1].data,
                        .count = (size_t)c->count * (size_t)units[dtype].in_element,
                        .bytes = (size_t)c->count * trama_dtype_size(dtype),
                        .type = units[dtype].type,
                        .operation = operations[w->combine],
                        .stream = g->stream};
    ncclResult_t result = calls[c->kind](&x);
    if (result)
        end_job(w, result);
    if (w->scale != 1)
        gpu_reduce(&w->views[0], 1, &w->views[0], COMBINE_SUM, w->scale, g);
}

#else

void work_cuda_collective(const work *w, const gpu *g)
{
    (void)w, (void)g;
    fatal("a collective among GPUs without NCCL");
}

#endif
#endif
