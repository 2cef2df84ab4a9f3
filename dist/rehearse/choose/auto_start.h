/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a program without annotations whose splits begin a choice of layouts. */
#ifndef AUTO_START_H
#define AUTO_START_H

#include "program.h"

/* A weight that starts split by columns, without axes. paired: the rows of another weight meet them. */
typedef struct start_weight {
    start_split split;
    int with; /* an earlier weight whose columns meet the same rows, or itself */
    bool paired;
} start_weight;

typedef struct auto_starts {
    ARRAY(int) inputs; /* ids of the values that start split by dim 0 */
    ARRAY(int) states; /* the trained ones that may be split so */
    ARRAY(start_weight) weights;
} auto_starts;

auto_starts auto_starts_of(const trama_program *program);
void auto_starts_free(auto_starts *starts);

#endif
