/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): NCCL's interface for GPUs of one process, or of several on this machine.
 * Work goes to streams as NCCL's does, each member meets the others there (meeting.h), and what members must not do
 * ends the process with a message: other calls, counts, types or roots, calls in another order, buffers of another GPU,
 * waiting for each other. */
#include "meeting.h"

#include <atomic>
#include <string.h>

using namespace standin;

struct ncclComm : member {
    int64_t calls = 0; /* collective ones */
    std::atomic<int> under_way{0};
};

namespace
{
/* A group collects calls in their order, with the stream of each, and communicators that wait for members. */
struct pending {
    ncclComm *comm;
    call mine;
    stream *in;
};
thread_local int depth;
thread_local std::vector<pending> group;
thread_local std::vector<ncclComm *> joining;

void check_buffer(const ncclComm *comm, const char *what, const call &c, const void *at, size_t bytes)
{
    if (!bytes)
        return;
    check_device(words_of(c).c_str(), at, bytes);
    if (gpu_of(at) != comm->gpu)
        wrong("NCCL: %s: rank %d is GPU %d, its %s buffer is on GPU %d", words_of(c).c_str(), comm->rank, comm->gpu,
              what, gpu_of(at));
}

/* Where results may lie over operands: exactly in place. */
void check_overlap(const call &c, size_t from_bytes, size_t to_bytes)
{
    const char *in_place = c.what == ALL_GATHER       ? c.to + (size_t)c.rank * from_bytes
                           : c.what == REDUCE_SCATTER ? c.from + (size_t)c.rank * to_bytes
                                                      : c.to;
    const bool over = c.from < c.to + to_bytes && c.to < c.from + from_bytes;
    if (over && in_place != (c.what == REDUCE_SCATTER ? (const char *)c.to : c.from))
        wrong("NCCL: %s: rank %d's buffers overlap, and are not in place", words_of(c).c_str(), c.rank);
}

void check_call(const ncclComm *comm, const call &c)
{
    const int n = members_of(*comm->all);
    const size_t from = operand_bytes(c, n), to = result_bytes(c, n);
    if (c.root < 0 || c.root >= n)
        wrong("NCCL: %s: a communicator of %d members", words_of(c).c_str(), n);
    check_buffer(comm, "send", c, c.from, from);
    check_buffer(comm, "receive", c, c.to, to);
    if (from && to)
        check_overlap(c, from, to);
}

void start(ncclComm *comm, stream *in, std::function<void()> work)
{
    make_late(in);
    comm->under_way++;
    submit(in, [comm, work] {
        work();
        comm->under_way--;
    });
}

/* Collective calls one by one; all sends and receives of a communicator in a stream together. */
void start_group(std::vector<pending> calls)
{
    while (!calls.empty()) {
        const pending first = calls.front();
        const member m = *first.comm;
        if (first.mine.what != SEND && first.mine.what != RECV) {
            const int64_t number = first.comm->calls++;
            const call mine = first.mine;
            start(first.comm, first.in, [m, number, mine] { meet(m, number, mine); });
            calls.erase(calls.begin());
            continue;
        }
        std::vector<call> together;
        for (auto p = calls.begin(); p != calls.end();)
            if (p->comm == first.comm && p->in == first.in && (p->mine.what == SEND || p->mine.what == RECV)) {
                together.push_back(p->mine);
                p = calls.erase(p);
            } else {
                ++p;
            }
        start(first.comm, first.in, [m, together] { exchange(m, together); });
    }
}

ncclResult_t post(ncclComm *comm, call mine, cudaStream_t in)
{
    if (!comm)
        return ncclInvalidArgument;
    mine.rank = comm->rank;
    stream *s = in ? stream_of(in) : stream_of(nullptr);
    if (gpu_of(s) != comm->gpu)
        wrong("NCCL: %s: rank %d is GPU %d, its stream is of GPU %d", words_of(mine).c_str(), comm->rank, comm->gpu,
              gpu_of(s));
    check_call(comm, mine);
    if (fails("nccl"))
        fail_clique(*comm->all);
    group.push_back({comm, mine, s});
    if (depth == 0)
        start_group(std::move(group)), group.clear();
    return ncclSuccess;
}

ncclResult_t join_as(ncclComm_t *to, const char *id, int members, int rank, int gpu)
{
    *to = nullptr;
    if (rank < 0 || rank >= members)
        return ncclInvalidArgument;
    const member m = {find_clique(id, members), rank, gpu};
    if (!join(m))
        return ncclInvalidUsage; /* as NCCL: one GPU, one rank */
    *to = new ncclComm;
    static_cast<member &>(**to) = m;
    return ncclSuccess;
}
} // namespace

/* ---- Communicators --------------------------------------------------------------------------- */

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    name_clique(id->internal, sizeof id->internal);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommInitRank(ncclComm_t *to, int members, ncclUniqueId id, int rank)
{
    const ncclResult_t result = join_as(to, id.internal, members, rank, current());
    if (result)
        return result;
    if (depth)
        joining.push_back(*to);
    else
        wait_for_members(**to);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int members, ncclUniqueId id, int rank, ncclConfig_t *)
{
    return ncclCommInitRank(to, members, id, rank);
}

extern "C" ncclResult_t ncclCommInitAll(ncclComm_t *to, int n, const int *list)
{
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id);
    for (int r = 0; r < n && !result; r++)
        result = join_as(&to[r], id.internal, n, r, list ? list[r] : r);
    return result;
}

extern "C" ncclResult_t ncclCommFinalize(ncclComm_t)
{
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm && comm->under_way)
        wrong("NCCL: rank %d of communicator %d is destroyed while its work is under way", comm->rank,
              number_of(*comm->all));
    delete comm;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    abort_clique(*comm->all);
    while (comm->under_way)
        ;
    delete comm;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = has_failed(*comm->all) ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommCount(const ncclComm_t comm, int *n)
{
    *n = members_of(*comm->all);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *gpu)
{
    *gpu = comm->gpu;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

extern "C" const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return (size_t)result < sizeof words / sizeof words[0] ? words[result] : "unknown result code";
}

extern "C" const char *ncclGetLastError(ncclComm_t)
{
    return "the stand-in tells on stderr";
}

/* ---- Calls ----------------------------------------------------------------------------------- */

extern "C" ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth)
        return ncclSuccess;
    for (const ncclComm *comm : joining)
        wait_for_members(*comm);
    joining.clear();
    const std::vector<pending> calls = std::move(group);
    group.clear();
    start_group(calls);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                      ncclComm_t comm, cudaStream_t in)
{
    return post(comm, {ALL_REDUCE, 0, (const char *)from, (char *)to, count, type, op, 0}, in);
}

extern "C" ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                          ncclComm_t comm, cudaStream_t in)
{
    return post(comm, {REDUCE_SCATTER, 0, (const char *)from, (char *)to, count, type, op, 0}, in);
}

extern "C" ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                                      cudaStream_t in)
{
    return post(comm, {ALL_GATHER, 0, (const char *)from, (char *)to, count, type, ncclSum, 0}, in);
}

extern "C" ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                                      ncclComm_t comm, cudaStream_t in)
{
    return post(comm, {BROADCAST, 0, (const char *)from, (char *)to, count, type, ncclSum, root}, in);
}

extern "C" ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   int root, ncclComm_t comm, cudaStream_t in)
{
    return post(comm, {REDUCE, 0, (const char *)from, (char *)to, count, type, op, root}, in);
}

extern "C" ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                 cudaStream_t in)
{
    return post(comm, {SEND, 0, (const char *)from, nullptr, count, type, ncclSum, peer}, in);
}

extern "C" ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                 cudaStream_t in)
{
    return post(comm, {RECV, 0, nullptr, (char *)to, count, type, ncclSum, peer}, in);
}
