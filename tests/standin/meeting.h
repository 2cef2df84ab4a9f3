/* SPDX-License-Identifier: Apache-2.0 */
/* Of the stand-in for NCCL (nccl.cpp): members of a communicator, in one process or several of this machine, and how
 * they meet. */
#ifndef STANDIN_MEETING_H
#define STANDIN_MEETING_H

#include "standin.h"

#include <memory>
#include <string>
#include <vector>

#include <nccl.h>

namespace standin
{
enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SEND, RECV };

/* A call of one member. */
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

std::string words_of(const call &c);
size_t size_of(ncclDataType_t type);
size_t operand_bytes(const call &c, int members); /* 0: it reads nothing */
size_t result_bytes(const call &c, int members);

/* All members of one communicator: memory that their processes share. */
struct clique;

/* Names a new clique; the process that does must live until all members have come. */
void name_clique(char *id, size_t room);
std::shared_ptr<clique> find_clique(const char *id, int members);
int number_of(const clique &c); /* in messages */
int members_of(const clique &c);

struct member {
    std::shared_ptr<clique> all;
    int rank, gpu; /* in the clique; of its process */
};

/* A member has come; false: its GPU or its rank is taken. */
bool join(const member &m);
void wait_for_members(const member &m);

/* Done by members, in threads of their streams: returns when the data are where they are to be, or the clique is
 * aborted. Ends the process with a message if members do not call the same, or do not come. */
void meet(const member &m, int64_t number, const call &mine);
void exchange(const member &m, const std::vector<call> &mine);

/* Fails all that is still to come of a clique; and wakes those who wait. */
void fail_clique(clique &c);
bool has_failed(const clique &c);
void abort_clique(clique &c);
} // namespace standin

#endif
