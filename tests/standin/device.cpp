/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for CUDA (standin.h): its GPUs, their memory, and how what fails is told. */
#include "simt.h"
#include "standin.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

namespace standin
{
namespace
{
enum { ALIGNMENT = 256, FILL = 0xff, FILLED = 1 << 20 }; /* fresh memory is NaN, and -1 */
constexpr size_t RESERVED = (size_t)256 << 30, PAGE = 4096;

struct allocation {
    size_t bytes, room; /* room: from the first whole page on, to the end of the last */
    int open;           /* for so many pieces of work */
};

/* One GPU. Every allocation has pages of its own and ends at the end of its last page; nobody may touch its pages but
 * work that is under way, for which they open at the first touch. Addresses are never used again. */
struct memory {
    char *base = nullptr, *top = nullptr;
    size_t used = 0, total = 0;
    unsigned peers = 0;
    std::map<char *, allocation> allocations;
};

std::mutex lock; /* of all below */
memory *const memories = new memory[MOST_GPUS]; /* outlives the threads of streams */
std::atomic<cudaError_t> lost{cudaSuccess};
thread_local cudaError_t last = cudaSuccess;
thread_local int selected = 0;
bool open_contexts[MOST_GPUS];
int exclusive_files[MOST_GPUS]; /* that the process has locked; 0: none */

size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

char *first_page(char *at, const allocation &a)
{
    return at + round_up(a.bytes, ALIGNMENT) - a.room;
}

void protect(char *from, size_t bytes, int how)
{
    if (mprotect(from, bytes, how))
        wrong("memory of a GPU could not be protected: %s", strerror(errno));
}

const char *place_in(memory &m, char *at, char *text, size_t room)
{
    auto after = m.allocations.upper_bound(at);
    if (after == m.allocations.begin())
        return "where nothing is allocated";
    const auto before = std::prev(after);
    const char *end = before->first + before->second.bytes;
    if (at < end)
        snprintf(text, room, "%td bytes into an allocation of %zu", at - before->first, before->second.bytes);
    else if (at < before->first + round_up(before->second.bytes, PAGE) + PAGE)
        snprintf(text, room, "%td bytes behind an allocation of %zu", at - end, before->second.bytes);
    else
        return "where nothing is allocated any more";
    return text;
}

struct sigaction before;

/* The calling thread's GPUs, whose memory it may touch, and the allocations that it opened. */
thread_local unsigned allowed;
thread_local std::vector<char *> *touched;

/* Opens the allocation in whose pages an address lies. False if there is none. */
bool open_at(int gpu, char *address)
{
    std::lock_guard<std::mutex> guard(lock);
    const auto after = memories[gpu].allocations.upper_bound(address + PAGE);
    for (auto at = after; at != memories[gpu].allocations.begin();) {
        --at;
        char *first = first_page(at->first, at->second);
        if (address >= first + at->second.room)
            return false;
        if (address < first)
            continue;
        if (at->second.open++ == 0)
            protect(first, at->second.room, PROT_READ | PROT_WRITE);
        touched->push_back(at->first);
        return true;
    }
    return false;
}

void at_fault(int signal, siginfo_t *info, void *)
{
    char *at = (char *)info->si_addr, text[200];
    const int gpu = gpu_of(at);
    if (gpu >= 0 && allowed >> gpu & 1 && open_at(gpu, at))
        return;
    if (gpu >= 0)
        fprintf(stderr, "stand-in for CUDA: %s touches memory of GPU %d at %p, %s\n", simt_where(), gpu, (void *)at,
                place_in(memories[gpu], at, text, sizeof text));
    sigaction(signal, &before, nullptr); /* and again, as without us */
}

void watch()
{
    struct sigaction handler = {};
    handler.sa_sigaction = at_fault;
    handler.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &handler, &before);
}

memory &memory_of(int gpu)
{
    memory &m = memories[gpu];
    static std::once_flag once;
    std::call_once(once, watch);
    if (m.base)
        return m;
    m.base = (char *)mmap(nullptr, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m.base == MAP_FAILED)
        wrong("no room for the addresses of a GPU: %s", strerror(errno));
    m.top = m.base;
    m.total = (size_t)setting("TRAMA_STANDIN_MEMORY", (int64_t)1 << 30);
    m.used = (size_t)setting("TRAMA_STANDIN_TAKEN", 0);
    return m;
}

void check_fill(const char *from, const char *to, const char *where, size_t bytes)
{
    for (const char *p = from; p < to; p++)
        if (*p != (char)FILL)
            wrong("a kernel wrote right %s an allocation of %zu bytes", where, bytes);
}

/* New memory is NaN, but for the middle of a large block, which is zeros, since pages that are never touched cost
 * nothing. */
void fill(char *first, size_t room)
{
    const size_t all = std::min(room, (size_t)FILLED);
    memset(first, FILL, all);
    memset(first + room - all, FILL, all);
}

/* The bytes around an allocation on its own pages are as they were. */
void check_around(const char *at, const allocation &a)
{
    const char *last = at + round_up(a.bytes, ALIGNMENT);
    check_fill(last - a.room, at, "before", a.bytes);
    check_fill(at + a.bytes, last, "behind", a.bytes);
}

void release(memory &m, std::map<char *, allocation>::iterator at)
{
    const allocation a = at->second;
    char *first = first_page(at->first, a);
    protect(first, a.room, PROT_READ);
    check_around(at->first, a);
    protect(first, a.room, PROT_NONE);
    madvise(first, a.room, MADV_DONTNEED);
    m.used -= round_up(a.bytes, ALIGNMENT);
    m.allocations.erase(at);
}

std::vector<int> visible_gpus()
{
    const int all = (int)setting("TRAMA_STANDIN_GPUS", 1);
    const char *chosen = getenv("CUDA_VISIBLE_DEVICES");
    std::vector<int> visible;
    if (all < 0 || all > MOST_GPUS)
        wrong("TRAMA_STANDIN_GPUS is %d, not 0 to %d", all, MOST_GPUS);
    for (int g = 0; !chosen && g < all; g++)
        visible.push_back(g);
    while (chosen && *chosen) { /* up to the first that does not exist */
        char *end;
        const long g = strtol(chosen, &end, 10);
        if (end == chosen || g < 0 || g >= all)
            break;
        visible.push_back((int)g);
        chosen = *end == ',' ? end + 1 : "";
    }
    return visible;
}
} // namespace

void wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "stand-in for CUDA: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

int64_t setting(const char *name, int64_t usual)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return usual;
    const int64_t value = strtoll(text, &end, 0);
    if (*end)
        wrong("%s is \"%s\", which is no number", name, text);
    return value;
}

static const std::vector<int> &visible()
{
    static const std::vector<int> &boards = *new std::vector<int>(visible_gpus());
    return boards;
}

int gpus(void)
{
    return (int)visible().size();
}

int board(int gpu)
{
    return visible()[(size_t)gpu];
}

int current(void)
{
    return selected;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

bool fails(const char *what)
{
    static std::mutex counting;
    static std::map<std::string, int64_t> &calls = *new std::map<std::string, int64_t>;
    const char *wanted = getenv("TRAMA_STANDIN_FAIL");
    const size_t length = strlen(what);
    std::lock_guard<std::mutex> guard(counting);
    const int64_t call = ++calls[what];
    for (; wanted && *wanted; wanted += strcspn(wanted, ","), wanted += *wanted == ',')
        if (!strncmp(wanted, what, length) && wanted[length] == ':' &&
            strtoll(wanted + length + 1, nullptr, 10) == call)
            return true;
    return false;
}

void lose(cudaError_t why)
{
    lost = why;
}

cudaError_t answer(const std::function<cudaError_t()> &call)
{
    cudaError_t error = lost;
    if (!error && !gpus())
        error = cudaErrorNoDevice;
    if (!error)
        error = call();
    if (!error)
        error = lost;
    if (error)
        last = error;
    return error;
}

/* ---- Contexts -------------------------------------------------------------------------------- */

/* In compute mode EXCLUSIVE_PROCESS one process at a time has a context on a GPU. */
static bool claim(int gpu)
{
    const char *folder = getenv("TRAMA_STANDIN_EXCLUSIVE");
    if (!folder || !*folder)
        return true;
    const int file = open((std::string(folder) + "/" + std::to_string(board(gpu))).c_str(), O_CREAT | O_RDWR, 0600);
    if (file < 0)
        wrong("TRAMA_STANDIN_EXCLUSIVE is \"%s\", where no file can be made: %s", folder, strerror(errno));
    if (flock(file, LOCK_EX | LOCK_NB)) {
        close(file);
        return false;
    }
    exclusive_files[gpu] = file;
    return true;
}

static cudaError_t open_context(int gpu)
{
    std::lock_guard<std::mutex> guard(lock);
    if (!open_contexts[gpu] && !claim(gpu))
        return cudaErrorDevicesUnavailable;
    open_contexts[gpu] = true;
    return cudaSuccess;
}

static void close_context(int gpu)
{
    std::lock_guard<std::mutex> guard(lock);
    open_contexts[gpu] = false;
    if (exclusive_files[gpu])
        close(exclusive_files[gpu]);
    exclusive_files[gpu] = 0;
}

bool has_context(int gpu)
{
    std::lock_guard<std::mutex> guard(lock);
    return gpu >= 0 && gpu < MOST_GPUS && open_contexts[gpu];
}

cudaError_t answer_here(const std::function<cudaError_t()> &call)
{
    return answer([&] {
        const cudaError_t error = open_context(selected);
        return error ? error : call();
    });
}

/* ---- Memory ---------------------------------------------------------------------------------- */

int gpu_of(const void *pointer)
{
    for (int g = 0; g < MOST_GPUS; g++)
        if (memories[g].base && (char *)pointer >= memories[g].base && (char *)pointer < memories[g].base + RESERVED)
            return g;
    return -1;
}

cudaError_t device_malloc(void **pointer, size_t bytes)
{
    *pointer = nullptr;
    if (!bytes)
        return cudaSuccess;
    if (fails("malloc"))
        return cudaErrorMemoryAllocation;
    std::lock_guard<std::mutex> guard(lock);
    memory &m = memory_of(selected);
    const size_t size = round_up(bytes, ALIGNMENT), room = round_up(bytes, PAGE);
    if (m.used > m.total || size > m.total - m.used)
        return cudaErrorMemoryAllocation;
    if (m.top + room + PAGE > m.base + RESERVED)
        wrong("a GPU's addresses are used up");
    char *first = m.top, *at = first + room - size;
    m.top += room + PAGE;
    protect(first, room, PROT_READ | PROT_WRITE);
    fill(first, room);
    protect(first, room, PROT_NONE);
    m.used += size;
    m.allocations[at] = {bytes, room, 0};
    *pointer = at;
    return cudaSuccess;
}

void device_free(void *pointer)
{
    const int gpu = gpu_of(pointer);
    if (gpu < 0)
        wrong("cudaFree: %p is in no GPU's memory", pointer);
    std::lock_guard<std::mutex> guard(lock);
    const auto at = memories[gpu].allocations.find((char *)pointer);
    if (at == memories[gpu].allocations.end())
        wrong("cudaFree: %p is not what cudaMalloc gave, or was freed before", pointer);
    release(memories[gpu], at);
}

void device_forget(int gpu)
{
    std::lock_guard<std::mutex> guard(lock);
    memory &m = memory_of(gpu);
    while (!m.allocations.empty())
        release(m, m.allocations.begin());
    m.peers = 0;
}

void device_room(int gpu, size_t *free, size_t *total)
{
    std::lock_guard<std::mutex> guard(lock);
    const memory &m = memory_of(gpu);
    *free = m.used < m.total ? m.total - m.used : 0;
    *total = m.total;
}

void check_device(const char *call, const void *pointer, size_t bytes)
{
    const int gpu = gpu_of(pointer);
    if (gpu < 0)
        wrong("%s: %p is host memory, where a GPU's is wanted", call, pointer);
    std::lock_guard<std::mutex> guard(lock);
    auto after = memories[gpu].allocations.upper_bound((char *)pointer);
    char text[200];
    if (after == memories[gpu].allocations.begin() ||
        (char *)pointer >= std::prev(after)->first + std::prev(after)->second.bytes)
        wrong("%s: %p is %s", call, pointer, place_in(memories[gpu], (char *)pointer, text, sizeof text));
    const auto at = std::prev(after);
    if ((size_t)((char *)pointer - at->first) + bytes > at->second.bytes)
        wrong("%s: %zu bytes from %p, which is %s", call, bytes, pointer,
              place_in(memories[gpu], (char *)pointer, text, sizeof text));
}

void check_host(const char *call, const void *pointer)
{
    const int gpu = gpu_of(pointer);
    if (gpu >= 0)
        wrong("%s: %p is memory of GPU %d, where the host's is wanted", call, pointer, gpu);
}

opened::opened(unsigned mask)
{
    allowed = mask;
    if (!touched)
        touched = new std::vector<char *>;
}

opened::~opened()
{
    std::lock_guard<std::mutex> guard(lock);
    allowed = 0;
    for (char *pointer : *touched) {
        auto &allocations = memories[gpu_of(pointer)].allocations;
        const auto at = allocations.find(pointer);
        if (at == allocations.end())
            wrong("memory at %p was freed while work used it", (void *)pointer);
        if (--at->second.open == 0)
            protect(first_page(pointer, at->second), at->second.room, PROT_NONE);
    }
    touched->clear();
}

unsigned reach(int gpu)
{
    std::lock_guard<std::mutex> guard(lock);
    return 1u << gpu | memories[gpu].peers;
}

bool enable_peer(int gpu, int peer)
{
    std::lock_guard<std::mutex> guard(lock);
    const bool was = memories[gpu].peers >> peer & 1;
    memories[gpu].peers |= 1u << peer;
    return !was;
}
} // namespace standin

using namespace standin;

/* ---- The run time's own functions ------------------------------------------------------------ */

extern "C" cudaError_t cudaGetDeviceCount(int *count)
{
    *count = gpus();
    return answer([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaSetDevice(int device)
{
    return answer([&] {
        if (device < 0 || device >= gpus())
            return cudaErrorInvalidDevice;
        const cudaError_t error = open_context(device); /* since CUDA 12 */
        if (!error)
            selected = device;
        return error;
    });
}

extern "C" int simt_has_context(int gpu)
{
    return has_context(gpu);
}

/* cuDevicePrimaryCtxGetState */
static int state_of_context(int gpu, unsigned *flags, int *active)
{
    *flags = 0;
    *active = has_context(gpu);
    return 0;
}

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                                        unsigned long long, cudaDriverEntryPointQueryResult *result)
{
    const bool known = !strcmp(symbol, "cuDevicePrimaryCtxGetState");
    *function = known ? (void *)state_of_context : nullptr;
    *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDevice(int *device)
{
    *device = selected;
    return answer([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = lost ? lost.load() : last;
    last = cudaSuccess;
    return error;
}

extern "C" cudaError_t cudaPeekAtLastError(void)
{
    return lost ? lost.load() : last;
}

extern "C" cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    return answer_here(
        [&] { return records_here() ? cudaErrorStreamCaptureUnsupported : device_malloc(pointer, bytes); });
}

extern "C" cudaError_t cudaFree(void *pointer)
{
    return answer_here([&] {
        if (records_here())
            return cudaErrorStreamCaptureUnsupported;
        if (pointer) {
            wait_for_all(gpu_of(pointer));
            device_free(pointer);
        }
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    return answer_here([&] {
        device_room(selected, free, total);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceReset(void)
{
    return answer([] {
        wait_for_all(selected);
        device_forget(selected);
        close_context(selected);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return answer([&] {
        if (device < 0 || device >= gpus() || peer < 0 || peer >= gpus())
            return cudaErrorInvalidDevice;
        *can = device != peer;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return answer_here([&] {
        if (flags || peer < 0 || peer >= gpus() || peer == selected)
            return flags ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
        if (const cudaError_t error = open_context(peer))
            return error;
        return enable_peer(selected, peer) ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
    });
}
