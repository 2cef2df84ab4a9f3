/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): copies and fills, and the host's memory that is pinned for them. Every copy is
 * a box of bytes; both sides are checked against the kind of copy that was asked for. */
#include "standin.h"

#include <map>
#include <mutex>
#include <vector>

#include <stdlib.h>
#include <string.h>

namespace standin
{
namespace
{
struct pinned {
    size_t bytes;
    bool ours; /* from cudaHostAlloc */
};

std::mutex lock;
std::map<char *, pinned> &pins = *new std::map<char *, pinned>;

/* Rows of bytes: depth slices of height rows of width bytes. */
struct box {
    size_t width, height, depth;
};
struct side {
    char *at;
    size_t pitch, slice; /* bytes from row to row, from slice to slice */
};

struct transfer {
    const char *call;
    side to, from;
    box size;
};

bool is_empty(const box &b)
{
    return !b.width || !b.height || !b.depth;
}

size_t span(const side &s, const box &b)
{
    return (b.depth - 1) * s.slice + (b.height - 1) * s.pitch + b.width;
}

void copy_rows(const transfer &t)
{
    for (size_t z = 0; z < t.size.depth; z++)
        for (size_t y = 0; y < t.size.height; y++)
            memmove(t.to.at + z * t.to.slice + y * t.to.pitch, t.from.at + z * t.from.slice + y * t.from.pitch,
                    t.size.width);
}

void check_side(const char *call, const side &s, const box &b, bool device, cudaMemcpyKind kind)
{
    if (s.pitch < b.width && b.height > 1)
        wrong("%s: rows of %zu bytes every %zu", call, b.width, s.pitch);
    if (gpu_of(s.at) >= 0 && (device || kind == cudaMemcpyDefault))
        check_device(call, s.at, span(s, b));
    else if (device && kind != cudaMemcpyDefault)
        check_device(call, s.at, 0);
    else
        check_host(call, s.at);
}

void check(const transfer &t, cudaMemcpyKind kind)
{
    check_side(t.call, t.from, t.size, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, kind);
    check_side(t.call, t.to, t.size, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, kind);
}

unsigned mask_of(const transfer &t)
{
    const int to = gpu_of(t.to.at), from = gpu_of(t.from.at);
    return (to < 0 ? 0 : 1u << to) | (from < 0 ? 0 : 1u << from);
}

/* From the host's memory that is not pinned, what is copied is what it holds now. */
void keep(transfer *t, std::shared_ptr<std::vector<char>> *kept)
{
    const size_t row = t->size.width, rows = t->size.height;
    *kept = std::make_shared<std::vector<char>>(row * rows * t->size.depth);
    const side whole = {(*kept)->data(), row, row * rows};
    copy_rows({t->call, whole, t->from, t->size});
    t->from = whole;
}

cudaError_t transfer_in(stream *s, transfer t, cudaMemcpyKind kind, bool waits)
{
    std::shared_ptr<std::vector<char>> kept;
    if (is_empty(t.size))
        return cudaSuccess;
    check(t, kind);
    if (fails("copy")) {
        lose(cudaErrorUnknown);
        return cudaSuccess;
    }
    const bool host_to = gpu_of(t.to.at) < 0, host_from = gpu_of(t.from.at) < 0;
    if (host_to && !is_pinned(t.to.at, span(t.to, t.size)))
        waits = true;
    else if (host_from && is_late(s) && !is_pinned(t.from.at, span(t.from, t.size)))
        keep(&t, &kept);
    const unsigned mask = mask_of(t);
    submit(s, [t, kept, mask] {
        opened access(mask);
        copy_rows(t);
    });
    if (waits)
        wait_for(s);
    return cudaSuccess;
}

cudaError_t fill_in(stream *s, const char *call, side to, box size, int value, bool waits)
{
    if (is_empty(size))
        return cudaSuccess;
    check_side(call, to, size, true, cudaMemcpyHostToDevice);
    submit(s, [=] {
        opened access(1u << gpu_of(to.at));
        for (size_t y = 0; y < size.height; y++)
            memset(to.at + y * to.pitch, value, size.width);
    });
    if (waits)
        wait_for(s);
    return cudaSuccess;
}

transfer line(const char *call, void *to, const void *from, size_t bytes)
{
    return {call, {(char *)to, bytes, bytes}, {(char *)from, bytes, bytes}, {bytes, 1, 1}};
}

transfer plane(const char *call, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
               size_t height)
{
    return {call, {(char *)to, to_pitch, 0}, {(char *)from, from_pitch, 0}, {width, height, 1}};
}

side side_of(const cudaPitchedPtr &p, const cudaPos &at)
{
    return {(char *)p.ptr + at.z * p.ysize * p.pitch + at.y * p.pitch + at.x, p.pitch, p.pitch * p.ysize};
}

template <typename P> transfer cube(const char *call, const P *p)
{
    if (p->srcArray || p->dstArray)
        wrong("%s: it knows no arrays", call);
    return {call,
            side_of(p->dstPtr, p->dstPos),
            side_of(p->srcPtr, p->srcPos),
            {p->extent.width, p->extent.height, p->extent.depth}};
}

void check_gpu(const char *call, const void *pointer, int gpu)
{
    if (gpu_of(pointer) != gpu)
        wrong("%s: %p is not in the memory of GPU %d", call, pointer, gpu);
}
} // namespace

bool is_pinned(const void *pointer, size_t bytes)
{
    std::lock_guard<std::mutex> guard(lock);
    const auto after = pins.upper_bound((char *)pointer);
    if (after == pins.begin())
        return false;
    const auto at = std::prev(after);
    return (char *)pointer + bytes <= at->first + at->second.bytes;
}
} // namespace standin

using namespace standin;

/* ---- Copies ---------------------------------------------------------------------------------- */

extern "C" cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t in)
{
    return answer_here(
        [&] { return transfer_in(stream_of(in), line("cudaMemcpyAsync", to, from, bytes), kind, false); });
}

extern "C" cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    return answer_here(
        [&] { return transfer_in(stream_of(nullptr), line("cudaMemcpy", to, from, bytes), kind, true); });
}

extern "C" cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                         size_t height, cudaMemcpyKind kind, cudaStream_t in)
{
    return answer_here([&] {
        const transfer t = plane("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height);
        return transfer_in(stream_of(in), t, kind, false);
    });
}

extern "C" cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                    size_t height, cudaMemcpyKind kind)
{
    return answer_here([&] {
        const transfer t = plane("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height);
        return transfer_in(stream_of(nullptr), t, kind, true);
    });
}

extern "C" cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t in)
{
    return answer_here([&] { return transfer_in(stream_of(in), cube("cudaMemcpy3DAsync", p), p->kind, false); });
}

extern "C" cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p)
{
    return answer_here([&] { return transfer_in(stream_of(nullptr), cube("cudaMemcpy3D", p), p->kind, true); });
}

extern "C" cudaError_t cudaMemcpyPeerAsync(void *to, int to_gpu, const void *from, int from_gpu, size_t bytes,
                                           cudaStream_t in)
{
    return answer_here([&] {
        check_gpu("cudaMemcpyPeerAsync", to, to_gpu);
        check_gpu("cudaMemcpyPeerAsync", from, from_gpu);
        const transfer t = line("cudaMemcpyPeerAsync", to, from, bytes);
        return transfer_in(stream_of(in), t, cudaMemcpyDeviceToDevice, false);
    });
}

extern "C" cudaError_t cudaMemcpyPeer(void *to, int to_gpu, const void *from, int from_gpu, size_t bytes)
{
    const cudaError_t error = cudaMemcpyPeerAsync(to, to_gpu, from, from_gpu, bytes, nullptr);
    return error ? error : cudaStreamSynchronize(nullptr);
}

extern "C" cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *p, cudaStream_t in)
{
    return answer_here([&] {
        const transfer t = cube("cudaMemcpy3DPeerAsync", p);
        check_gpu(t.call, t.to.at, p->dstDevice);
        check_gpu(t.call, t.from.at, p->srcDevice);
        return transfer_in(stream_of(in), t, cudaMemcpyDeviceToDevice, false);
    });
}

extern "C" cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *p)
{
    const cudaError_t error = cudaMemcpy3DPeerAsync(p, nullptr);
    return error ? error : cudaStreamSynchronize(nullptr);
}

extern "C" cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t in)
{
    return answer_here([&] {
        return fill_in(stream_of(in), "cudaMemsetAsync", {(char *)to, bytes, 0}, {bytes, 1, 1}, value, false);
    });
}

extern "C" cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return answer_here([&] {
        return fill_in(stream_of(nullptr), "cudaMemset", {(char *)to, bytes, 0}, {bytes, 1, 1}, value, true);
    });
}

extern "C" cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                         cudaStream_t in)
{
    return answer_here([&] {
        return fill_in(stream_of(in), "cudaMemset2DAsync", {(char *)to, pitch, 0}, {width, height, 1}, value, false);
    });
}

/* ---- Pinned memory of the host --------------------------------------------------------------- */

extern "C" cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned)
{
    return answer_here([&] {
        *pointer = bytes ? aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
        if (bytes && !*pointer)
            return cudaErrorMemoryAllocation;
        std::lock_guard<std::mutex> guard(lock);
        if (bytes)
            pins[(char *)*pointer] = {bytes, true};
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

static cudaError_t unpin(void *pointer, bool ours, cudaError_t otherwise)
{
    std::lock_guard<std::mutex> guard(lock);
    const auto at = pins.find((char *)pointer);
    if (at == pins.end() || at->second.ours != ours)
        return otherwise;
    pins.erase(at);
    return cudaSuccess;
}

extern "C" cudaError_t cudaFreeHost(void *pointer)
{
    return answer([&] {
        const cudaError_t error = pointer ? unpin(pointer, true, cudaErrorInvalidValue) : cudaSuccess;
        if (!error)
            free(pointer);
        return error;
    });
}

extern "C" cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned)
{
    return answer_here([&] {
        check_host("cudaHostRegister", pointer);
        std::lock_guard<std::mutex> guard(lock);
        const auto after = pins.lower_bound((char *)pointer + bytes);
        if (!pointer || !bytes)
            return cudaErrorInvalidValue;
        if (after != pins.begin() && std::prev(after)->first + std::prev(after)->second.bytes > (char *)pointer)
            return cudaErrorHostMemoryAlreadyRegistered;
        pins[(char *)pointer] = {bytes, false};
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaHostUnregister(void *pointer)
{
    return answer([&] { return unpin(pointer, false, cudaErrorHostMemoryNotRegistered); });
}

extern "C" cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
    return answer([&] {
        *device = host;
        return is_pinned(host, 1) ? cudaSuccess : cudaErrorInvalidValue;
    });
}

extern "C" cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *to, const void *pointer)
{
    return answer([&] {
        const int gpu = gpu_of(pointer);
        const bool pinned = gpu < 0 && is_pinned(pointer, 1);
        memset(to, 0, sizeof *to);
        to->type = gpu >= 0 ? cudaMemoryTypeDevice : pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
        to->device = gpu >= 0 ? gpu : pinned ? current() : cudaInvalidDeviceId;
        to->devicePointer = gpu >= 0 || pinned ? (void *)pointer : nullptr;
        to->hostPointer = gpu < 0 ? (void *)pointer : nullptr;
        return cudaSuccess;
    });
}
