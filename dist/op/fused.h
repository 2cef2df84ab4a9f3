/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of one task are done as one. A plan says it (dist/plan/finish/fuse_calls.c), codelets do it. */
#ifndef FUSED_H
#define FUSED_H

typedef enum fused_kind {
    FUSED_NOT,      /* the call goes alone */
    FUSED_ADDITION, /* a product and the call that adds its result to a state: it is computed right into the state */
    FUSED_EPILOGUE, /* a product and a chain behind it, which alone reads it: its kernel on a GPU computes the chain, or
                     * the first calls of it, on the way */
    FUSED_CHUNKS,   /* all calls, and the sum before them, keep the order of elements: they may go chunk by chunk */
    FUSED_CHAIN /* the same of calls in a row over one float type, of which an update is the last: one GPU kernel. It
                 * casts operands of other float types that lie in memory, and results that go there */
} fused_kind;

enum { FUSED_MOST_CHAINED = 16 }; /* calls of a FUSED_CHAIN */

/* A run of calls that begins at this one. Where a kernel cannot do the calls as one, this call goes alone, and the next
 * call says which run begins there. */
typedef struct fused_run {
    fused_kind kind;
    int n; /* calls, this one counted; 0 of FUSED_NOT */
} fused_run;

#endif
