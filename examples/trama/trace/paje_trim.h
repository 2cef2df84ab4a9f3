/* SPDX-License-Identifier: Apache-2.0 */
/* Makes of the Paje trace of StarPU >= 1.4.8 one that StarVZ 0.8 reads, and finds the workers in it. */
#ifndef PAJE_TRIM_H
#define PAJE_TRIM_H

#include <stdbool.h>
#include <stdio.h>

/* Copies without the columns that came later, Priority of events 20 and 21, HName, X and Y of events 23 and 24, and
 * with MPITAG called Tag again. What is between quotes is one column, whatever it holds. Else, so that StarVZ and
 * pj_dump read it: names with blanks get quotes where they are defined, the lists of Params and NumaNodes are cut where
 * they are long, a user's thread that drove a worker ends as what it is, and, where the trace is of one process only,
 * links of stolen work are left out. For each container of a worker calls found with its rank, 0 where the trace is of
 * one, and number. The files' error flags tell whether it worked. */
void paje_trim(FILE *in, FILE *out, bool one_process, void (*found)(void *closure, int rank, int number),
               void *closure);

#endif
