/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): capture of streams, and graphs. A graph does the work of the streams again,
 * with the arguments that its kernels had then; memory that was freed since is out of bounds, as everywhere. Each
 * launch takes another order of those that the streams and their events allow. */
#include "standin.h"

#include <atomic>
#include <mutex>
#include <set>

using namespace standin;

namespace
{
struct graph {
    std::shared_ptr<recording> work;
};
struct executable {
    std::shared_ptr<recording> work;
    int gpu;
};

std::mutex lock; /* of both */
std::set<const void *> &alive = *new std::set<const void *>;

template <typename T> T *born(T *made)
{
    std::lock_guard<std::mutex> guard(lock);
    alive.insert(made);
    return made;
}

void expect_alive(const void *what)
{
    std::lock_guard<std::mutex> guard(lock);
    if (!alive.count(what))
        wrong("a graph that does not exist, or was destroyed");
}

/* Of the nodes that may come next, one by chance. */
void submit_in_any_order(stream *s, const std::vector<node> &nodes)
{
    static std::atomic<unsigned> launches;
    unsigned chance = launches++ * 2654435761u;
    std::vector<size_t> missing(nodes.size()), ready;
    std::vector<std::vector<size_t>> next(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        missing[i] = nodes[i].after.size();
        for (size_t j : nodes[i].after)
            next[j].push_back(i);
        if (missing[i] == 0)
            ready.push_back(i);
    }
    while (!ready.empty()) {
        chance = chance * 1103515245 + 12345;
        std::swap(ready[chance / 65536 % ready.size()], ready.back());
        const size_t i = ready.back();
        ready.pop_back();
        submit(s, nodes[i].work);
        for (size_t j : next[i])
            if (--missing[j] == 0)
                ready.push_back(j);
    }
}

template <typename T> cudaError_t end(void *of)
{
    return answer([&] {
        expect_alive(of);
        {
            std::lock_guard<std::mutex> guard(lock);
            alive.erase(of);
        }
        delete (T *)of;
        return cudaSuccess;
    });
}
} // namespace

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t of, cudaStreamCaptureMode mode)
{
    return answer_here([&] {
        if (!of || of == cudaStreamLegacy)
            return cudaErrorStreamCaptureUnsupported;
        if (mode != cudaStreamCaptureModeThreadLocal)
            wrong("the stand-in captures in the mode of a thread only");
        if (is_recording(stream_of(of)))
            return cudaErrorIllegalState;
        begin_recording(stream_of(of));
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t of, cudaGraph_t *to)
{
    return answer([&] {
        bool joined;
        const auto work = end_recording(stream_of(of), &joined).of;
        if (!work)
            return cudaErrorIllegalState;
        if (!joined)
            return cudaErrorStreamCaptureUnjoined;
        *to = (cudaGraph_t)born(new graph{work});
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *to, cudaGraph_t from, unsigned long long)
{
    return answer_here([&] {
        expect_alive(from);
        if (fails("graph"))
            return cudaErrorMemoryAllocation;
        *to = (cudaGraphExec_t)born(new executable{((graph *)from)->work, current()});
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t what, cudaStream_t in)
{
    return answer([&] {
        expect_alive(what);
        const executable *e = (executable *)what;
        stream *s = stream_of(in);
        if (gpu_of(s) != e->gpu)
            wrong("a graph of GPU %d is launched in a stream of GPU %d", e->gpu, gpu_of(s));
        if (fails("launch")) {
            lose(cudaErrorLaunchFailure);
            return cudaErrorLaunchFailure;
        }
        submit_in_any_order(s, e->work->nodes);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t of)
{
    return end<graph>(of);
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t of)
{
    return end<executable>(of);
}
