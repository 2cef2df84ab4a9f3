/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline stages and offload, completed from the user's marks to every value. */
#ifndef MARKS_H
#define MARKS_H

#include "program.h"

/* Tables by value id. */
typedef struct marks {
    int *stage;    /* 1 + the stage; 0: none */
    bool *offload; /* rests in host memory */
} marks;

/* An op without a stage takes the latest stage of its operands, else that of its first reader; a leaf takes that of its
 * first reader. Aliases and updated values rest where their state does, and an optimizer's state where its parameter
 * does. E_ARGUMENT where an op of the forward program reads a result of a later stage. */
trama_status marks_complete(const trama_program *program, marks *m);
void marks_free(marks *m);

#endif
