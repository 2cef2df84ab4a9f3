/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for NCCL (nccl.cpp): members of a communicator meet, it is compared what they call, and the last of
 * them moves the data of all. Who waits for whom is known, and told when nobody came for a while. */
#include "meeting.h"
#include "numbers.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace standin
{
namespace
{
std::mutex lock; /* of all cliques */
std::condition_variable &changed = *new std::condition_variable;
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

/* Waits until there is nothing to wait for, or the clique is aborted. */
template <typename F>
void wait_in(std::unique_lock<std::mutex> &guard, const clique &c, const std::string &why, F ready)
{
    const auto patience = std::chrono::seconds(setting("TRAMA_STANDIN_PATIENCE", 10));
    waiting[&why] = why;
    if (!changed.wait_for(guard, patience, [&] { return ready() || c.aborted; })) {
        std::string all;
        for (const auto &w : waiting)
            all += "\n    " + w.second;
        wrong("members of communicators wait for each other:%s%s", all.c_str(),
              c.failed ? "\n    (a communicator has failed, and was not aborted)" : "");
    }
    waiting.erase(&why);
}

/* ---- Elements -------------------------------------------------------------------------------- */

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

/* ---- Collective calls ------------------------------------------------------------------------ */

bool same(const call &a, const call &b)
{
    return a.what == b.what && a.count == b.count && a.type == b.type && a.root == b.root && a.op == b.op;
}

/* What all get, before it is written: operands may lie where results go. */
std::vector<char> combined_of(const std::vector<call> &all)
{
    const call &one = all[0];
    const size_t size = size_of(one.type), n = all.size();
    const size_t elements = one.what == ALL_GATHER || one.what == REDUCE_SCATTER ? one.count * n : one.count;
    std::vector<char> result(elements * size);
    if (one.what == BROADCAST)
        memcpy(result.data(), all[(size_t)one.root].from, elements * size);
    for (size_t r = 0; one.what == ALL_GATHER && r < n; r++)
        memcpy(result.data() + r * one.count * size, all[r].from, one.count * size);
    std::vector<const char *> from;
    for (const call &c : all)
        from.push_back(c.from);
    for (size_t i = 0; one.what != BROADCAST && one.what != ALL_GATHER && i < elements; i++)
        reduce_element(from, i, one.type, one.op, &result[i * size]);
    return result;
}

void move_data(const clique &c, const std::vector<call> &all)
{
    unsigned mask = 0;
    for (const int gpu : c.gpu)
        mask |= 1u << gpu;
    opened access(mask);
    const std::vector<char> result = combined_of(all);
    const size_t part = all[0].count * size_of(all[0].type);
    for (const call &mine : all)
        if (mine.what == REDUCE_SCATTER)
            memcpy(mine.to, result.data() + (size_t)mine.rank * part, part);
        else if (mine.what != REDUCE || mine.rank == mine.root)
            memcpy(mine.to, result.data(), result.size());
}
} // namespace

clique::clique(int members) : number(++cliques), gpu((size_t)members, -1)
{
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

bool join(const std::shared_ptr<clique> &c, int rank, int gpu)
{
    std::lock_guard<std::mutex> guard(lock);
    for (size_t r = 0; r < c->gpu.size(); r++)
        if (c->gpu[r] == gpu || ((int)r == rank && c->gpu[r] >= 0))
            return false;
    c->gpu[(size_t)rank] = gpu;
    changed.notify_all();
    return true;
}

void wait_for_members(const std::shared_ptr<clique> &c, int rank)
{
    std::unique_lock<std::mutex> guard(lock);
    const std::string why =
        text("rank %d of communicator %d, for all its %zu members to come", rank, c->number, c->gpu.size());
    wait_in(guard, *c, why, [&] {
        for (const int gpu : c->gpu)
            if (gpu < 0)
                return false;
        return true;
    });
}

void meet(const std::shared_ptr<clique> &c, int64_t number, const call &mine)
{
    std::unique_lock<std::mutex> guard(lock);
    if (c->aborted)
        return;
    slot &s = c->slots[number];
    if (!s.arrived.empty() && !same(s.arrived[0], mine))
        wrong("communicator %d, call %lld: rank %d calls %s; rank %d calls %s", c->number, (long long)number,
              s.arrived[0].rank, words_of(s.arrived[0]).c_str(), mine.rank, words_of(mine).c_str());
    s.arrived.push_back(mine);
    if (s.arrived.size() == c->gpu.size() && !c->failed) {
        std::sort(s.arrived.begin(), s.arrived.end(), [](const call &a, const call &b) { return a.rank < b.rank; });
        move_data(*c, s.arrived);
        s.done = true;
        changed.notify_all();
    }
    const std::string why = text("rank %d of communicator %d, in its call %lld: %s", mine.rank, c->number,
                                 (long long)number, words_of(mine).c_str());
    wait_in(guard, *c, why, [&] { return s.done; });
    if (++s.left == (int)c->gpu.size())
        c->slots.erase(number);
}

/* ---- Sends and receives ---------------------------------------------------------------------- */

namespace
{
/* Takes the first letter of the other kind between the same two; false: there is none yet. */
bool deliver(clique &c, letter *l)
{
    const bool sends = l->mine.what == SEND;
    const std::pair<int, int> way =
        sends ? std::make_pair(l->mine.rank, l->mine.root) : std::make_pair(l->mine.root, l->mine.rank);
    auto &queue = c.letters[way];
    if (queue.empty() || queue.front()->mine.what == l->mine.what) {
        queue.push_back(l);
        return false;
    }
    letter *other = queue.front();
    const call &from = sends ? l->mine : other->mine, &to = sends ? other->mine : l->mine;
    if (from.count != to.count || from.type != to.type)
        wrong("communicator %d: rank %d calls %s; rank %d calls %s", c.number, way.first, words_of(from).c_str(),
              way.second, words_of(to).c_str());
    opened access(1u << c.gpu[(size_t)way.first] | 1u << c.gpu[(size_t)way.second]);
    memmove(to.to, from.from, from.count * size_of(from.type));
    queue.erase(queue.begin());
    l->done = other->done = true;
    return true;
}
} // namespace

void exchange(const std::shared_ptr<clique> &c, const std::vector<call> &mine)
{
    std::unique_lock<std::mutex> guard(lock);
    std::vector<std::unique_ptr<letter>> letters;
    if (c->aborted)
        return;
    for (const call &m : mine) {
        letters.push_back(std::make_unique<letter>());
        letters.back()->mine = m;
        deliver(*c, letters.back().get());
    }
    changed.notify_all();
    std::string why =
        text("rank %d of communicator %d, in a group of %zu sends and receives:", mine[0].rank, c->number, mine.size());
    for (const auto &l : letters)
        if (!l->done)
            why += text(" %s %d;", l->mine.what == SEND ? "to" : "from", l->mine.root);
    wait_in(guard, *c, why, [&] {
        for (const auto &l : letters)
            if (!l->done)
                return false;
        return true;
    });
}

void abort_clique(const std::shared_ptr<clique> &c)
{
    std::lock_guard<std::mutex> guard(lock);
    c->aborted = true;
    changed.notify_all();
}
} // namespace standin
