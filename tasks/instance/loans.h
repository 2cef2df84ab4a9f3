/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a plan that its instances make loans (loan.h) instead of copying the elements. */
#ifndef LOANS_H
#define LOANS_H

#include "instance.h"

/* Finds the messages of the instance that sender and receiver can make loans, and what they need for that. Collective:
 * all ranks have made an instance of the same target. `call` names the user's. E_SYSTEM where MPI fails. */
trama_status loans_agree(instance *in, const char *call);

/* Frees loans and borrowed shards; nothing is in flight. */
void loans_end(instance *in);

/* Sets the loans of the lowered steps, and the steps behind which they are returned. */
void loans_lower(const instance *in, lowering *l);

#endif
