/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): streams, and the kernels that run in them. With TRAMA_STANDIN_ASYNC
 * each stream is a thread that takes its time, so that a missing wait shows. */
#include "simt.h"
#include "standin.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace standin
{
struct stream {
    int gpu;
    bool blocking; /* with the GPU's own stream */
    std::mutex running, lock;
    std::condition_variable moved;
    std::deque<std::function<void()>> queue;
    uint64_t submitted = 0, done = 0;
    bool ending = false;
    std::atomic<bool> late; /* work is done in the thread */
    moment kept;            /* while it is captured; of the one thread that uses it then */
    bool began;             /* the recording, which other streams may have joined */
    std::thread thread;
};

namespace
{
using handle = std::shared_ptr<stream>;

std::atomic<unsigned long> branches; /* nodes of recordings that are not just after the one before */

enum { PATIENCE = 200 }; /* microseconds that work is late at most */

std::mutex lock; /* of the list, which outlives the threads */
std::vector<handle> &all = *new std::vector<handle>;

void work_off(handle s)
{
    std::unique_lock<std::mutex> guard(s->lock);
    for (unsigned late = 12345;; late = late * 1103515245 + 12345) {
        s->moved.wait(guard, [&] { return s->ending || !s->queue.empty(); });
        if (s->queue.empty())
            return;
        const auto work = std::move(s->queue.front());
        s->queue.pop_front();
        guard.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(late / 65536 % PATIENCE));
        work();
        guard.lock();
        s->done++;
        s->moved.notify_all();
    }
}

void wait_until(stream *s, uint64_t done)
{
    std::unique_lock<std::mutex> guard(s->lock);
    s->moved.wait(guard, [&] { return s->done >= done; });
}

uint64_t submitted(stream *s)
{
    std::lock_guard<std::mutex> guard(s->lock);
    return s->submitted;
}

handle new_stream(int gpu, bool blocking)
{
    const handle s = std::make_shared<stream>();
    s->gpu = gpu;
    s->blocking = blocking;
    s->late = setting("TRAMA_STANDIN_ASYNC", 0) != 0;
    s->began = false;
    all.push_back(s);
    return s;
}

/* The GPU's own stream, which all blocking ones wait for and which waits for them. */
handle own_stream(int gpu)
{
    static handle *own = new handle[MOST_GPUS];
    std::lock_guard<std::mutex> guard(lock);
    if (!own[gpu])
        own[gpu] = new_stream(gpu, true);
    return own[gpu];
}

handle handle_of(stream *s)
{
    std::lock_guard<std::mutex> guard(lock);
    for (const handle &h : all)
        if (h.get() == s)
            return h;
    wrong("a stream that does not exist, or was destroyed");
}

/* Work of other streams that must be done before new work of s. */
std::vector<std::pair<handle, uint64_t>> before(const handle &s)
{
    std::vector<std::pair<handle, uint64_t>> others;
    const handle own = own_stream(s->gpu);
    std::lock_guard<std::mutex> guard(lock);
    for (const handle &h : all)
        if (h != s && h->gpu == s->gpu && s->blocking && h->blocking && (s == own || h == own))
            others.emplace_back(h, submitted(h.get()));
    return others;
}
} // namespace

stream *stream_of(cudaStream_t h)
{
    if (!h || h == cudaStreamLegacy)
        return own_stream(current()).get();
    return handle_of((stream *)h).get();
}

int gpu_of(const stream *s)
{
    return s->gpu;
}

void submit(stream *to, std::function<void()> work)
{
    const handle s = handle_of(to);
    if (s->kept.of) {
        auto &nodes = s->kept.of->nodes;
        branches += s->kept.after != std::vector<size_t>(!nodes.empty(), nodes.size() - 1);
        nodes.push_back({std::move(work), s->kept.after});
        s->kept.after = {nodes.size() - 1};
        return;
    }
    if (!s->late) {
        std::lock_guard<std::mutex> guard(s->running);
        work();
        return;
    }
    const auto first = before(s);
    std::lock_guard<std::mutex> guard(s->lock);
    s->queue.push_back([first, work] {
        for (const auto &other : first)
            wait_until(other.first.get(), other.second);
        work();
    });
    if (s->submitted++ == 0)
        s->thread = std::thread(work_off, s);
    s->moved.notify_all();
}

bool is_late(const stream *s)
{
    return s->late;
}

static thread_local int recordings;

void begin_recording(stream *s)
{
    s->kept = {std::make_shared<recording>(), {}};
    s->kept.of->streams = {s};
    s->began = true;
    recordings++;
}

/* Whether all nodes of `these` come before those of m, or are among them. */
static bool is_before(const std::vector<size_t> &these, const moment &m)
{
    const auto &nodes = m.of->nodes;
    std::vector<bool> reached(nodes.size());
    for (size_t i : m.after)
        reached[i] = true;
    for (size_t i = nodes.size(); i-- > 0;)
        for (size_t j : reached[i] ? nodes[i].after : std::vector<size_t>())
            reached[j] = true;
    for (size_t i : these)
        if (!reached[i])
            return false;
    return true;
}

moment end_recording(stream *s, bool *joined)
{
    const moment m = s->began ? s->kept : moment();
    *joined = true;
    if (!m.of)
        return m;
    recordings--;
    s->began = false;
    m.of->ended = true;
    for (stream *other : m.of->streams) {
        *joined &= is_before(other->kept.after, m);
        other->kept = moment();
    }
    return m;
}

moment recorded_so_far(stream *s)
{
    return s->kept;
}

void record_after(stream *s, const moment &m)
{
    if (m.of->ended || (s->kept.of && s->kept.of != m.of))
        wrong("a stream waits for an event of %s", m.of->ended ? "a capture that has ended" : "another capture");
    if (!s->kept.of)
        m.of->streams.push_back(s);
    s->kept.of = m.of;
    s->kept.after.insert(s->kept.after.end(), m.after.begin(), m.after.end());
}

bool is_recording(stream *s)
{
    return s->kept.of != nullptr;
}

bool records_here(void)
{
    return recordings > 0;
}

void make_late(stream *s)
{
    s->late = true;
}

void wait_for(stream *s)
{
    wait_until(s, submitted(s));
}

void wait_for_all(int gpu)
{
    std::vector<handle> now;
    {
        std::lock_guard<std::mutex> guard(lock);
        now = all;
    }
    for (const handle &s : now)
        if (s->gpu == gpu)
            wait_for(s.get());
}
} // namespace standin

using namespace standin;

/* ---- Kernels --------------------------------------------------------------------------------- */

static std::atomic<unsigned long> launches;

unsigned long simt_launches(void)
{
    return launches;
}

unsigned long simt_branches(void)
{
    return branches;
}

void simt_enqueue(void *to, std::function<void()> work)
{
    stream *s = stream_of((cudaStream_t)to);
    if (s->gpu != current())
        wrong("a kernel is started in a stream of GPU %d, while GPU %d is the current one", s->gpu, current());
    if (fails("launch")) {
        lose(cudaErrorLaunchFailure);
        return;
    }
    const unsigned mask = reach(s->gpu);
    launches += !is_recording(s);
    submit(s, [mask, work] {
        opened access(mask);
        work();
    });
}

void simt_check_argument(const char *kernel, int number, uintptr_t address)
{
    const void *pointer = (const void *)address;
    if (pointer && gpu_of(pointer) < 0 && !is_pinned(pointer, 1))
        wrong("kernel %s: argument %d is %p, which no GPU can reach", kernel, number, pointer);
}

/* ---- Streams --------------------------------------------------------------------------------- */

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags)
{
    return answer_here([&] {
        std::lock_guard<std::mutex> guard(lock);
        *to = (cudaStream_t)new_stream(current(), !(flags & cudaStreamNonBlocking)).get();
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t *to, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(to, flags);
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t *to)
{
    return cudaStreamCreateWithFlags(to, cudaStreamDefault);
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t of)
{
    return answer([&] {
        const handle s = handle_of((stream *)of);
        if (is_recording(s.get()))
            wrong("a stream that is captured is destroyed");
        wait_for(s.get());
        {
            std::lock_guard<std::mutex> guard(s->lock);
            s->ending = true;
            s->moved.notify_all();
        }
        if (s->thread.joinable())
            s->thread.join();
        std::lock_guard<std::mutex> guard(lock);
        for (auto at = all.begin(); at != all.end(); ++at)
            if (*at == s) {
                all.erase(at);
                break;
            }
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t of)
{
    return answer([&] {
        if (is_recording(stream_of(of)))
            return cudaErrorStreamCaptureUnsupported;
        wait_for(stream_of(of));
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t of)
{
    return answer([&] {
        stream *s = stream_of(of);
        if (is_recording(s))
            return cudaErrorStreamCaptureUnsupported;
        std::lock_guard<std::mutex> guard(s->lock);
        return s->done >= s->submitted ? cudaSuccess : cudaErrorNotReady;
    });
}

extern "C" cudaError_t cudaDeviceSynchronize(void)
{
    return answer([] {
        if (records_here())
            return cudaErrorStreamCaptureUnsupported;
        wait_for_all(current());
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t to, cudaHostFn_t function, void *with)
{
    return answer([&] {
        submit(stream_of(to), [=] { function(with); });
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return answer([] { return cudaSuccess; });
}
