/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for CUDA's threads, for tests (simt.h): each thread of a block is a fiber, and one thread of the processor
 * switches among them at barriers and shuffles. Threads that never wait run one after the other on one fiber. */
#undef _FORTIFY_SOURCE /* jumps between stacks */
#include "simt.h"

#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim(1, 1, 1), gridDim(1, 1, 1);

namespace
{
enum { MOST_THREADS = 1024, WARP = 32, STACK = 256 << 10, GUARD = 64 << 10 };

struct fiber {
    char *stack = nullptr;
    jmp_buf at;
    ucontext_t first; /* until it has started */
    bool started = true;
};

enum state { READY, AT_BARRIER, AT_EXCHANGE, ENDED };

struct lane {
    uint3 index;
    state now;
    fiber *on; /* NULL: not yet started */
    const char *file;
    int line;
    unsigned mask; /* of its exchange */
    uint64_t value;
};

/* One thread of the processor runs one block at a time. */
struct simulation {
    const char *kernel = "";
    void (*body)(const void *) = nullptr;
    const void *with = nullptr;
    int threads = 0;
    lane lanes[MOST_THREADS];
    int turn[MOST_THREADS]; /* lanes in the order in which they run */
    int at = 0;             /* turn[at] runs */
    uint64_t exchanged[MOST_THREADS];
    fiber scheduler;
    std::vector<fiber *> idle;
    std::vector<std::unique_ptr<fiber>> fibers;
    const void *stack = nullptr; /* of the thread of the processor, for AddressSanitizer */
    size_t stack_size = 0;
    ~simulation()
    {
        for (auto &f : fibers)
            munmap(f->stack - GUARD, STACK + GUARD);
    }
};

thread_local simulation own;
__thread simulation *sim; /* own, once a kernel has run: it needs no look whether own is there */
thread_local bool running;

unsigned order_from_environment()
{
    const char *order = getenv("TRAMA_STANDIN_ORDER");
    if (!order || !strcmp(order, "forward"))
        return SIMT_FORWARD;
    return !strcmp(order, "reverse") ? (unsigned)SIMT_REVERSE : (unsigned)strtoul(order, nullptr, 10);
}

unsigned order = order_from_environment();

lane &current()
{
    return sim->lanes[sim->turn[sim->at]];
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "stand-in for CUDA: kernel %s, block (%u,%u,%u): ", sim ? sim->kernel : "", blockIdx.x, blockIdx.y,
            blockIdx.z);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

/* ---- Fibers ---------------------------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__
void leaving(void **kept, const fiber *to)
{
    const bool home = to == &sim->scheduler;
    __sanitizer_start_switch_fiber(kept, home ? sim->stack : to->stack, home ? sim->stack_size : (size_t)STACK);
}
void arrived(void *kept)
{
    __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
}
void started()
{
    __sanitizer_finish_switch_fiber(nullptr, &sim->stack, &sim->stack_size);
}
#else
void leaving(void **, const fiber *)
{
}
void arrived(void *)
{
}
void started()
{
}
#endif

void switch_to(fiber *from, fiber *to)
{
    void *kept = nullptr;
    leaving(&kept, to);
    if (!_setjmp(from->at)) {
        if (to->started)
            _longjmp(to->at, 1);
        to->started = true;
        setcontext(&to->first);
    }
    arrived(kept);
}

void start_lane()
{
    lane &l = current();
    threadIdx = l.index;
    sim->body(sim->with);
    current().now = ENDED;
}

/* Runs lanes one after the other as long as the next has not started; then the fiber is free for others. */
void fiber_main()
{
    started();
    for (;;) {
        fiber *self = current().on;
        start_lane();
        while (sim->at + 1 < sim->threads && !sim->lanes[sim->turn[sim->at + 1]].on) {
            sim->at++;
            current().on = self;
            start_lane();
        }
        sim->idle.push_back(self);
        switch_to(self, &sim->scheduler);
    }
}

fiber *new_fiber()
{
    sim->fibers.push_back(std::make_unique<fiber>());
    fiber *f = sim->fibers.back().get();
    char *memory = (char *)mmap(nullptr, STACK + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + GUARD, STACK, PROT_READ | PROT_WRITE))
        wrong("no memory for the stacks of its threads");
    f->stack = memory + GUARD;
    f->started = false;
    getcontext(&f->first);
    f->first.uc_stack.ss_sp = f->stack;
    f->first.uc_stack.ss_size = STACK;
    f->first.uc_link = nullptr;
    makecontext(&f->first, fiber_main, 0);
    return f;
}

void resume()
{
    lane &l = current();
    if (!l.on) {
        if (sim->idle.empty())
            sim->idle.push_back(new_fiber());
        l.on = sim->idle.back();
        sim->idle.pop_back();
    }
    switch_to(&sim->scheduler, l.on);
}

/* The calling lane waits, until the scheduler has found that those that it waits for are there. */
void wait_as(state now, const char *file, int line)
{
    if (!running) {
        fprintf(stderr, "stand-in for CUDA: %s:%d: outside of a kernel\n", file, line);
        abort();
    }
    lane &l = current();
    l.now = now;
    l.file = file;
    l.line = line;
    switch_to(l.on, &sim->scheduler);
    threadIdx = l.index;
}

/* ---- One block ------------------------------------------------------------------------------- */

const char *doing(const lane &l)
{
    static char text[256];
    if (l.now == ENDED)
        return "has ended";
    snprintf(text, sizeof text, "waits at %s:%d", l.file, l.line);
    return text;
}

[[noreturn]] void diverged(const lane &a, const lane &b)
{
    char first[256];
    snprintf(first, sizeof first, "%s", doing(a));
    wrong("thread (%u,%u,%u) %s, while thread (%u,%u,%u) %s", a.index.x, a.index.y, a.index.z, first, b.index.x,
          b.index.y, b.index.z, doing(b));
}

bool together(const lane &a, const lane &b)
{
    if (a.now == ENDED || b.now == ENDED)
        return a.now == b.now;
    return a.now == b.now && a.mask == b.mask && a.line == b.line && !strcmp(a.file, b.file);
}

/* Lets the lanes of a mask go on if all of them are there. */
bool release_exchange(int i)
{
    const int warp = i - i % WARP;
    const unsigned mask = sim->lanes[i].mask;
    for (int j = 0; j < WARP; j++) {
        if (!(mask >> j & 1))
            continue;
        if (warp + j >= sim->threads)
            wrong("%s:%d: the mask %08x names lane %d, which the block does not have", sim->lanes[i].file,
                  sim->lanes[i].line, mask, j);
        if (!together(sim->lanes[i], sim->lanes[warp + j]))
            return false;
    }
    for (int j = 0; j < WARP; j++)
        if (mask >> j & 1) {
            sim->lanes[warp + j].now = READY;
            sim->exchanged[warp + j] = sim->lanes[warp + j].value;
        }
    return true;
}

/* Nobody can go on: ends the process if there are two that do not wait for the same. */
void check_same()
{
    for (int i = 0; i < sim->threads; i++)
        for (int j = 0; sim->lanes[i].now == AT_EXCHANGE && j < WARP; j++)
            if (sim->lanes[i].mask >> j & 1 && !together(sim->lanes[i], sim->lanes[i - i % WARP + j]))
                diverged(sim->lanes[i], sim->lanes[i - i % WARP + j]);
    for (int i = 1; i < sim->threads; i++)
        if (!together(sim->lanes[0], sim->lanes[i]))
            diverged(sim->lanes[0], sim->lanes[i]);
}

/* True if lanes go on; false if all have ended. */
bool release()
{
    bool released = false;
    for (int i = 0; i < sim->threads; i++)
        if (sim->lanes[i].now == AT_EXCHANGE)
            released |= release_exchange(i);
    if (released)
        return true;
    check_same();
    if (sim->lanes[0].now == ENDED)
        return false;
    for (int i = 0; i < sim->threads; i++)
        sim->lanes[i].now = READY;
    return true;
}

void run_block()
{
    for (int i = 0; i < sim->threads; i++) {
        lane &l = sim->lanes[i];
        const unsigned n = (unsigned)i;
        l.index = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
        l.now = READY;
        l.on = nullptr;
        l.mask = 0;
    }
    do
        for (sim->at = 0; sim->at < sim->threads; sim->at++)
            if (current().now == READY)
                resume();
    while (release());
}

/* ---- One grid -------------------------------------------------------------------------------- */

void check_sizes(dim3 grid, dim3 block)
{
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads < 1 || threads > MOST_THREADS || block.z > 64)
        wrong("a block of %u x %u x %u threads; a GPU takes 1 to 1024, and 64 in z", block.x, block.y, block.z);
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        wrong("a grid of %u x %u x %u blocks; a GPU takes 1 to 2^31 - 1, 65535 and 65535", grid.x, grid.y, grid.z);
}

void order_threads(std::minstd_rand &random)
{
    for (int i = 0; i < sim->threads; i++)
        sim->turn[i] = order == SIMT_REVERSE ? sim->threads - 1 - i : i;
    for (int i = sim->threads - 1; order > SIMT_REVERSE && i > 0; i--)
        std::swap(sim->turn[i], sim->turn[random() % (unsigned)(i + 1)]);
}

/* Block number i of n is block (i * stride + first) mod n: all of them once, whatever the order. */
struct block_order {
    uint64_t n, stride, first;
};

block_order order_blocks(uint64_t n, std::minstd_rand &random)
{
    if (order <= SIMT_REVERSE)
        return {n, order == SIMT_REVERSE ? n - 1 : 1, order == SIMT_REVERSE ? n - 1 : 0};
    block_order o = {n, 1 + random() % n, random() % n};
    while (std::gcd(o.stride, n) != 1)
        o.stride++;
    return o;
}
} // namespace

const char *simt_where(void)
{
    static thread_local char text[256];
    if (!running)
        return "the host";
    snprintf(text, sizeof text, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", sim->kernel, blockIdx.x, blockIdx.y,
             blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    return text;
}

void simt_order(unsigned how)
{
    order = how;
}

void simt_run(const char *kernel, dim3 grid, dim3 block, void (*body)(const void *), const void *with)
{
    const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
    std::minstd_rand random(order);
    sim = &own;
    sim->kernel = kernel;
    if (running)
        wrong("started by a kernel");
    check_sizes(grid, block);
    running = true;
    sim->body = body;
    sim->with = with;
    sim->threads = (int)(block.x * block.y * block.z);
    blockDim = block;
    gridDim = grid;
    const block_order o = order_blocks(n, random);
    order_threads(random);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t b = (uint64_t)(((unsigned __int128)i * o.stride + o.first) % n);
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
    running = false;
}

void simt_barrier(const char *file, int line)
{
    if (running)
        current().mask = 0;
    wait_as(AT_BARRIER, file, line);
}

uint64_t simt_exchange(unsigned mask, uint64_t value, int from, const char *file, int line)
{
    const int self = simt_lane();
    if (!(mask >> self & 1))
        wrong("%s:%d: lane %d is not in its own mask %08x", file, line, self, mask);
    if (!(mask >> from & 1))
        wrong("%s:%d: lane %d reads from lane %d, which is not in the mask %08x", file, line, self, from, mask);
    if (running) {
        current().mask = mask;
        current().value = value;
    }
    const int i = running ? sim->turn[sim->at] : 0;
    wait_as(AT_EXCHANGE, file, line);
    return sim->exchanged[i - i % WARP + from];
}
