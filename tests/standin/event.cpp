/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): events. */
#include "standin.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

using namespace standin;

namespace
{
/* One recording of an event. */
struct mark {
    std::mutex lock;
    std::condition_variable changed;
    bool done = false;
    moment captured; /* of is NULL: recorded in a stream that ran */
    std::chrono::steady_clock::time_point when;
};

struct event {
    bool timed;
    std::mutex lock;
    std::shared_ptr<mark> last;
};

std::shared_ptr<mark> mark_of(cudaEvent_t of)
{
    event *e = (event *)of;
    std::lock_guard<std::mutex> guard(e->lock);
    return e->last;
}

void wait_for(mark *m)
{
    std::unique_lock<std::mutex> guard(m->lock);
    m->changed.wait(guard, [&] { return m->done; });
}

bool is_done(mark *m)
{
    std::lock_guard<std::mutex> guard(m->lock);
    return m->done;
}
} // namespace

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags)
{
    return answer_here([&] {
        event *e = new event;
        e->timed = !(flags & cudaEventDisableTiming);
        *to = (cudaEvent_t)e;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t *to)
{
    return cudaEventCreateWithFlags(to, cudaEventDefault);
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t of)
{
    return answer([&] {
        delete (event *)of;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t of, cudaStream_t in)
{
    return answer([&] {
        event *e = (event *)of;
        const auto m = std::make_shared<mark>();
        {
            std::lock_guard<std::mutex> guard(e->lock);
            e->last = m;
        }
        if ((m->captured = recorded_so_far(stream_of(in))).of)
            return cudaSuccess;
        submit(stream_of(in), [m] {
            std::lock_guard<std::mutex> guard(m->lock);
            m->done = true;
            m->when = std::chrono::steady_clock::now();
            m->changed.notify_all();
        });
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t of)
{
    return answer([&] {
        const auto m = mark_of(of);
        return !m || is_done(m.get()) ? cudaSuccess : cudaErrorNotReady;
    });
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t of)
{
    return answer([&] {
        if (const auto m = mark_of(of))
            wait_for(m.get());
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t of, unsigned)
{
    return answer([&] {
        const auto m = mark_of(of);
        if (m && m->captured.of)
            record_after(stream_of(stream), m->captured);
        else if (m)
            submit(stream_of(stream), [m] { wait_for(m.get()); });
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    return answer([&] {
        const auto a = mark_of(from), b = mark_of(to);
        if (!((event *)from)->timed || !((event *)to)->timed || !a || !b)
            return cudaErrorInvalidResourceHandle;
        if (!is_done(a.get()) || !is_done(b.get()))
            return cudaErrorNotReady;
        *milliseconds = std::chrono::duration<float, std::milli>(b->when - a->when).count();
        return cudaSuccess;
    });
}
