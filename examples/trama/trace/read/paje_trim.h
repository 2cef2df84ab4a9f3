/* SPDX-License-Identifier: Apache-2.0 */
/* Makes of the Paje trace of StarPU >= 1.4.8 one that StarVZ 0.8 reads, and finds the workers in it. */
#ifndef PAJE_TRIM_H
#define PAJE_TRIM_H

#include <stdbool.h>
#include <stdio.h>

/* Listens during the copy; rank is 0 where the trace is of one. */
typedef struct paje_listener {
    void *closure;
    void (*worker)(void *closure, int rank, int number); /* for each container of one */
    void (*flush)(void *closure, int rank);              /* for each time that events were written during the run */
} paje_listener;

/* Copies without the columns that came later, Priority of events 20 and 21, HName, X and Y of events 23 and 24, and
 * with MPITAG called Tag again. Quoted text is one column, with all that it holds. Else, so that StarVZ and
 * pj_dump read it: names with blanks get quotes where they are defined, the lists of Params and NumaNodes are cut where
 * they are long, a user's thread that drove a worker ends as a thread, and, where the trace is of one process only,
 * links of stolen work are left out. Where MPI's thread polls and drives by turns, hundreds of thousands of times, only
 * the first state stays. The files' error flags tell whether it worked. */
void paje_trim(FILE *in, FILE *out, bool one_process, const paje_listener *listener);

#endif
