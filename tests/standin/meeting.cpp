/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for NCCL (nccl.cpp): members of a communicator meet in memory that their processes share. Each lays
 * down what it calls and a copy of its operand; when all have, it is compared, and each takes its result from the
 * copies. Waits in this process are known, and told when nobody came for a while. */
#include "meeting.h"
#include "numbers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <errno.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <new>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace standin
{
namespace
{
/* Memory without a name that another process can open as long as its maker holds it. */
struct place {
    pid_t process;
    int file;
    size_t bytes;
};

/* A member's part of a collective call, or one side of a message. */
struct entry {
    bool there;
    call what;
    place operand;
};

enum { CALLS = 8, MESSAGES = 32 };

struct slot {
    int64_t number;
    int arrived, left, gone, first; /* first: who came first */
    bool complete;
    entry of[MOST_GPUS];
};

struct message {
    entry sent, received;
    bool taken;
};
} // namespace

struct clique {
    pthread_mutex_t lock;
    int number, members;
    int board[MOST_GPUS]; /* of each member; -1: not yet there */
    std::atomic<bool> failed, aborted;
    slot slots[CALLS];                                                      /* collective calls by their number */
    int64_t n_sent[MOST_GPUS][MOST_GPUS], n_received[MOST_GPUS][MOST_GPUS]; /* from, to */
    message messages[MOST_GPUS][MOST_GPUS][MESSAGES];
};

namespace
{
std::mutex of_waiting;
std::map<const void *, std::string> &waiting = *new std::map<const void *, std::string>;
std::atomic<int> cliques{0};

std::string text(const char *format, ...)
{
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return words;
}

/* Holds a clique's lock, be it from a process that died with it. */
class guard
{
  public:
    explicit guard(clique &c) : of(c)
    {
        take();
    }
    ~guard()
    {
        give();
    }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    void take()
    {
        if (pthread_mutex_lock(&of.lock) == EOWNERDEAD)
            pthread_mutex_consistent(&of.lock);
    }
    void give()
    {
        pthread_mutex_unlock(&of.lock);
    }

  private:
    clique &of;
};

[[noreturn]] void wait_no_longer(const clique &c)
{
    std::string all;
    std::lock_guard<std::mutex> listed(of_waiting);
    for (const auto &w : waiting)
        all += "\n    " + w.second;
    wrong("members of communicators wait for each other:%s%s", all.c_str(),
          c.failed ? "\n    (a communicator has failed, and was not aborted)" : "");
}

void list(const void *who, const std::string *why)
{
    std::lock_guard<std::mutex> listed(of_waiting);
    if (why)
        waiting[who] = *why;
    else
        waiting.erase(who);
}

/* Waits until there is nothing to wait for, or the clique is aborted: false then. It looks again and again: nothing
 * that processes wait in survives when one of them is killed. */
template <typename F> bool wait_in(guard &held, const clique &c, const std::string &why, F ready)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(setting("TRAMA_STANDIN_PATIENCE", 10));
    if (!c.aborted && ready())
        return true;
    list(&why, &why);
    while (!c.aborted && !ready()) {
        if (std::chrono::steady_clock::now() > end)
            wait_no_longer(c);
        held.give();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        held.take();
    }
    list(&why, nullptr);
    return !c.aborted;
}

/* ---- Shared memory --------------------------------------------------------------------------- */

int new_memory(size_t bytes)
{
    const int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes))
        wrong("no memory that processes share: %s", strerror(errno));
    return file;
}

char *map(int file, size_t bytes)
{
    void *at = bytes ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : nullptr;
    if (at == MAP_FAILED)
        wrong("no memory that processes share: %s", strerror(errno));
    return (char *)at;
}

int open_memory(const place &p)
{
    const int file = open(text("/proc/%d/fd/%d", (int)p.process, p.file).c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        wrong("what process %d has laid down cannot be opened: %s", (int)p.process, strerror(errno));
    return file;
}

/* A copy of a member's operand, for the others, as long as it lives. */
class copy
{
  public:
    copy(int gpu, const char *from, size_t bytes) : bytes(bytes)
    {
        if (!bytes)
            return;
        file = new_memory(bytes);
        char *to = map(file, bytes);
        {
            opened access(1u << gpu);
            memcpy(to, from, bytes);
        }
        munmap(to, bytes);
    }
    ~copy()
    {
        if (file >= 0)
            close(file);
    }
    copy(const copy &) = delete;
    copy &operator=(const copy &) = delete;
    place where() const
    {
        return {getpid(), file, bytes};
    }

  private:
    int file = -1;
    size_t bytes;
};

/* Another's place, mapped. */
class seen
{
  public:
    explicit seen(const place &p) : bytes(p.bytes)
    {
        if (!bytes)
            return;
        const int file = open_memory(p);
        at = map(file, bytes);
        close(file);
    }
    ~seen()
    {
        if (at)
            munmap(at, bytes);
    }
    seen(const seen &) = delete;
    seen &operator=(const seen &) = delete;
    const char *data() const
    {
        return at;
    }

  private:
    char *at = nullptr;
    size_t bytes;
};

/* ---- Elements -------------------------------------------------------------------------------- */

double as_double(ncclDataType_t type, const char *at)
{
    double d;
    float f;
    uint16_t h;
    memcpy(&d, at, type == ncclFloat64 ? 8 : 0);
    memcpy(&f, at, type == ncclFloat32 ? 4 : 0);
    memcpy(&h, at, size_of(type) == 2 ? 2 : 0);
    return type == ncclFloat64 ? d : type == ncclFloat32 ? (double)f : type == ncclFloat16 ? of_half(h) : of_bf16(h);
}

void put_double(ncclDataType_t type, char *at, double d)
{
    const float f = (float)d;
    const uint16_t h = type == ncclFloat16 ? to_half(d) : to_bf16(d);
    memcpy(at, type == ncclFloat64 ? (const void *)&d : type == ncclFloat32 ? (const void *)&f : &h, size_of(type));
}

int64_t as_integer(ncclDataType_t type, const char *at)
{
    const size_t size = size_of(type);
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    const bool has_sign = type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
    return has_sign ? (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size) : (int64_t)bits;
}

template <typename T> T combined(ncclRedOp_t op, T a, T b)
{
    return op == ncclProd ? a * b : op == ncclMax ? std::max(a, b) : op == ncclMin ? std::min(a, b) : a + b;
}

/* Element at of all members, combined in the order of their ranks. */
void reduce_element(const std::vector<const char *> &from, size_t at, ncclDataType_t type, ncclRedOp_t op, char *to)
{
    const size_t size = size_of(type), n = from.size();
    if (type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 || type == ncclFloat64) {
        double x = as_double(type, from[0] + at * size);
        for (size_t r = 1; r < n; r++)
            x = combined(op, x, as_double(type, from[r] + at * size));
        put_double(type, to, op == ncclAvg ? x / (double)n : x);
        return;
    }
    int64_t x = as_integer(type, from[0] + at * size);
    for (size_t r = 1; r < n; r++)
        x = type == ncclUint64
                ? (int64_t)combined<uint64_t>(op, (uint64_t)x, (uint64_t)as_integer(type, from[r] + at * size))
                : combined<int64_t>(op, x, as_integer(type, from[r] + at * size));
    x = op == ncclAvg ? x / (int64_t)n : x;
    memcpy(to, &x, size);
}
} // namespace

/* ---- Calls and their words ------------------------------------------------------------------- */

size_t size_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    default:
        wrong("NCCL: it does not know type %d", (int)type);
    }
}

size_t operand_bytes(const call &c, int members)
{
    const bool reads = c.what != RECV && (c.what != BROADCAST || c.rank == c.root);
    return reads ? c.count * size_of(c.type) * (c.what == REDUCE_SCATTER ? (size_t)members : 1) : 0;
}

size_t result_bytes(const call &c, int members)
{
    const bool writes = c.what != SEND && (c.what != REDUCE || c.rank == c.root);
    return writes ? c.count * size_of(c.type) * (c.what == ALL_GATHER ? (size_t)members : 1) : 0;
}

std::string words_of(const call &c)
{
    static const char *const names[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast",
                                        "Reduce",    "Send",          "Recv"};
    static const char *const types[] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16"};
    static const char *const operations[] = {"sum", "prod", "max", "min", "avg"};
    const bool has_root = c.what >= BROADCAST, combines = c.what <= REDUCE_SCATTER || c.what == REDUCE;
    std::string words = text("%s of %zu %s", names[c.what], c.count, (size_t)c.type < 10 ? types[c.type] : "unknown");
    if (combines && (size_t)c.op < 5)
        words += text(", %s", operations[c.op]);
    if (has_root)
        words += text(c.what >= SEND ? ", peer %d" : ", root %d", c.root);
    return words;
}

/* ---- Cliques --------------------------------------------------------------------------------- */

static clique *map_clique(int file)
{
    return (clique *)map(file, sizeof(clique));
}

void name_clique(char *id, size_t room)
{
    const int file = new_memory(sizeof(clique)); /* open until the process ends */
    clique *c = new (map_clique(file)) clique;   /* of zeros, as it came */
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&c->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    c->number = ++cliques;
    std::fill(c->board, c->board + MOST_GPUS, -1);
    munmap((void *)c, sizeof *c);
    snprintf(id, room, "stand-in %d %d", (int)getpid(), file);
}

std::shared_ptr<clique> find_clique(const char *id, int members)
{
    place at = {0, -1, sizeof(clique)};
    if (sscanf(id, "stand-in %d %d", &at.process, &at.file) != 2)
        wrong("NCCL: a name that ncclGetUniqueId did not give");
    if (members < 1 || members > MOST_GPUS)
        wrong("NCCL: a communicator of %d members", members);
    const int file = open_memory(at);
    clique *c = map_clique(file);
    close(file);
    guard held(*c);
    if (c->members && c->members != members)
        wrong("NCCL: one says that a communicator has %d members, another says %d", members, c->members);
    c->members = members;
    return std::shared_ptr<clique>(c, [](clique *unused) { munmap((void *)unused, sizeof *unused); });
}

int number_of(const clique &c)
{
    return c.number;
}

int members_of(const clique &c)
{
    return c.members;
}

bool join(const member &m)
{
    clique &c = *m.all;
    guard held(c);
    const int mine = board(m.gpu);
    if (c.board[m.rank] >= 0 || std::find(c.board, c.board + c.members, mine) != c.board + c.members)
        return false;
    c.board[m.rank] = mine;
    return true;
}

void wait_for_members(const member &m)
{
    const clique &c = *m.all;
    guard held(*m.all);
    wait_in(held, c, text("rank %d of communicator %d, for all its %d members to come", m.rank, c.number, c.members),
            [&] { return std::find(c.board, c.board + c.members, -1) == c.board + c.members; });
}

void fail_clique(clique &c)
{
    c.failed = true;
}

bool has_failed(const clique &c)
{
    return c.failed;
}

void abort_clique(clique &c)
{
    c.aborted = true;
}

/* ---- Collective calls ------------------------------------------------------------------------ */

static bool same(const call &a, const call &b)
{
    return a.what == b.what && a.count == b.count && a.type == b.type && a.root == b.root && a.op == b.op;
}

/* A member's result, of operands in the order of ranks. */
static std::vector<char> result_of(const call &mine, const std::vector<const char *> &from)
{
    const size_t size = size_of(mine.type), n = from.size();
    std::vector<char> result(result_bytes(mine, (int)n));
    if (mine.what == BROADCAST)
        memcpy(result.data(), from[(size_t)mine.root], result.size());
    for (size_t r = 0; mine.what == ALL_GATHER && r < n; r++)
        memcpy(result.data() + r * mine.count * size, from[r], mine.count * size);
    const size_t first = mine.what == REDUCE_SCATTER ? (size_t)mine.rank * mine.count : 0;
    for (size_t i = 0; mine.what != BROADCAST && mine.what != ALL_GATHER && i < result.size() / size; i++)
        reduce_element(from, first + i, mine.type, mine.op, &result[i * size]);
    return result;
}

static void take_result(const member &m, const slot &s, const call &mine)
{
    std::vector<std::unique_ptr<seen>> operands;
    std::vector<const char *> from;
    for (int r = 0; r < m.all->members; r++) {
        operands.push_back(std::make_unique<seen>(s.of[r].operand));
        from.push_back(operands.back()->data());
    }
    const std::vector<char> result = mine.count ? result_of(mine, from) : std::vector<char>();
    opened access(1u << m.gpu);
    if (!result.empty())
        memcpy(mine.to, result.data(), result.size());
}

void meet(const member &m, int64_t number, const call &mine)
{
    clique &c = *m.all;
    const copy operand(m.gpu, mine.from, operand_bytes(mine, c.members));
    const std::string why = text("rank %d of communicator %d, in its call %lld: %s", m.rank, c.number,
                                 (long long)number, words_of(mine).c_str());
    slot &s = c.slots[number % CALLS];
    guard held(c);
    if (!wait_in(held, c, why, [&] { return !s.arrived || s.number == number; }))
        return;
    if (!s.arrived++) {
        s.number = number;
        s.first = m.rank;
    } else if (const call &first = s.of[s.first].what; !same(first, mine)) {
        wrong("communicator %d, call %lld: rank %d calls %s; rank %d calls %s", c.number, (long long)number, first.rank,
              words_of(first).c_str(), m.rank, words_of(mine).c_str());
    }
    s.of[m.rank] = {true, mine, operand.where()};
    s.complete = s.arrived == c.members && !c.failed;
    if (!wait_in(held, c, why, [&] { return s.complete; }))
        return;
    held.give();
    take_result(m, s, mine);
    held.take();
    s.left++;
    if (wait_in(held, c, why, [&] { return s.left == c.members; }) && ++s.gone == c.members)
        s = slot();
}

/* ---- Sends and receives ---------------------------------------------------------------------- */

static void compare(const clique &c, const message &of)
{
    const call &from = of.sent.what, &to = of.received.what;
    if (of.sent.there && of.received.there && (from.count != to.count || from.type != to.type))
        wrong("communicator %d: rank %d calls %s; rank %d calls %s", c.number, from.rank, words_of(from).c_str(),
              to.rank, words_of(to).c_str());
}

/* The n-th send from one to another meets the n-th receive. */
static message *post(guard &held, clique &c, const call &mine, const place &operand, const std::string &why)
{
    const bool sends = mine.what == SEND;
    const int from = sends ? mine.rank : mine.root, to = sends ? mine.root : mine.rank;
    message *of = &c.messages[from][to][(sends ? c.n_sent : c.n_received)[from][to]++ % MESSAGES];
    entry *own = sends ? &of->sent : &of->received;
    if (!wait_in(held, c, why, [&] { return !own->there; }))
        return nullptr;
    *own = {true, mine, operand};
    compare(c, *of);
    return of;
}

static bool receive(guard &held, const member &m, message *of, const std::string &why)
{
    if (!wait_in(held, *m.all, why, [&] { return of->sent.there; }))
        return false;
    held.give();
    {
        const call &mine = of->received.what;
        const seen from(of->sent.operand);
        opened access(1u << m.gpu);
        if (mine.count)
            memcpy(mine.to, from.data(), mine.count * size_of(mine.type));
    }
    held.take();
    of->taken = true;
    return true;
}

void exchange(const member &m, const std::vector<call> &mine)
{
    clique &c = *m.all;
    std::vector<std::unique_ptr<copy>> operands;
    std::vector<message *> posted;
    std::string why =
        text("rank %d of communicator %d, in a group of %zu sends and receives:", m.rank, c.number, mine.size());
    for (const call &one : mine) {
        why += text(" %s %d;", one.what == SEND ? "to" : "from", one.root);
        operands.push_back(std::make_unique<copy>(m.gpu, one.from, operand_bytes(one, c.members)));
    }
    guard held(c);
    for (size_t i = 0; i < mine.size(); i++) {
        posted.push_back(post(held, c, mine[i], operands[i]->where(), why));
        if (!posted[i])
            return;
    }
    for (size_t i = 0; i < mine.size(); i++)
        if (mine[i].what == RECV && !receive(held, m, posted[i], why))
            return;
    for (size_t i = 0; i < mine.size(); i++)
        if (mine[i].what == SEND) {
            if (!wait_in(held, c, why, [&] { return posted[i]->taken; }))
                return;
            *posted[i] = message();
        }
}
} // namespace standin
