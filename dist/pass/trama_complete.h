/* SPDX-License-Identifier: Apache-2.0 */
/* Completion, to look at: which layout every value of a program gets, without a context. */
#ifndef TRAMA_COMPLETE_H
#define TRAMA_COMPLETE_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Completes a copy of the program and says a line for each value: name, type, shape, "on MESH as LAYOUT", its stage and
 * where it rests if it is marked so; before them the order of processes, behind them a line for each conflict. nominal:
 * the extent that TRAMA_ANY is taken for, >= 1, halved until every tensor has at most 2^60 bytes. Errors: the program's
 * first, E_LAYOUT, E_ARGUMENT and E_MEMORY as trama_compile has them; *text is set on TRAMA_OK only. trama_text_free frees it.
 */
trama_status trama_complete_text(const trama_program *program, int64_t nominal, char **text);

typedef struct trama_completion trama_completion; /* a program's layouts, completed; it does not follow the program */

/* The same completion, to be asked value by value. Errors as above; *completion is set on TRAMA_OK only. The caller
 * destroys it; destroying nulls *completion, and NULL is allowed. */
trama_status trama_completion_create(const trama_program *program, int64_t nominal, trama_completion **completion);
void trama_completion_destroy(trama_completion **completion);

/* Of a value, as completion found it, where trama_annotation_mesh and its like say what the user wrote: its mesh, the
 * names of whose axes are those of the first of equal meshes; its layout, with no axis open; "cpu" where it rests in host
 * memory, else NULL; its stage. NULL, false with *layout unchanged, and TRAMA_NO_STAGE for values that were not in the program,
 * and for updates. Meshes and masks live as long as the completion. */
const trama_mesh *trama_completion_mesh(const trama_completion *completion, const trama_value *value);
bool trama_completion_layout(const trama_completion *completion, const trama_value *value, trama_layout *layout);
const char *trama_completion_device(const trama_completion *completion, const trama_value *value);
int trama_completion_stage(const trama_completion *completion, const trama_value *value);

/* Of the op that made the value: the mesh and the layouts on which it computes. Where operand i lies otherwise, it is
 * resharded before the op; where the value of result i does, behind it. NULL and false as above, for values that no op made,
 * and outside. */
const trama_mesh *trama_completion_op_mesh(const trama_completion *completion, const trama_value *value);
bool trama_completion_operand(const trama_completion *completion, const trama_value *value, int i, trama_layout *layout);
bool trama_completion_result(const trama_completion *completion, const trama_value *value, int i, trama_layout *layout);

TRAMA_API_END
#endif
