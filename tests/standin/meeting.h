/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for NCCL (nccl.cpp): members of a communicator and how they meet. */
#ifndef STANDIN_MEETING_H
#define STANDIN_MEETING_H

#include "standin.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nccl.h>

namespace standin
{
enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SEND, RECV };

/* What one member calls. */
struct call {
    kind what;
    int rank;
    const char *from;
    char *to;
    size_t count; /* elements, as in NCCL's call */
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; /* or peer */
};

/* One collective call. */
struct slot {
    std::vector<call> arrived;
    bool done = false;
    int left = 0;
};

/* A send or a receive that waits for the other side. */
struct letter {
    call mine;
    bool done = false;
};

/* All members of one communicator. */
struct clique {
    explicit clique(int members);
    const int number;     /* in messages */
    std::vector<int> gpu; /* of each member; -1: not yet there */
    std::atomic<bool> failed{false}, aborted{false};
    std::map<int64_t, slot> slots;                                /* collective calls by their number */
    std::map<std::pair<int, int>, std::vector<letter *>> letters; /* from, to: posted and not yet taken */
};

std::string words_of(const call &c);

/* Rank `rank` of a clique has come on a GPU; false: the GPU or the rank is taken. */
bool join(const std::shared_ptr<clique> &c, int rank, int gpu);
void wait_for_members(const std::shared_ptr<clique> &c, int rank);

/* Done by members, in threads of their streams: returns when the data are where they are to be, or the clique is
 * aborted. Ends the process with a message if members do not call the same, or do not come. */
void meet(const std::shared_ptr<clique> &c, int64_t number, const call &mine);
void exchange(const std::shared_ptr<clique> &c, const std::vector<call> &mine);

/* Wakes all that wait, for them to see that a clique is aborted. */
void abort_clique(const std::shared_ptr<clique> &c);
} // namespace standin

#endif
