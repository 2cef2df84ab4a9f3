/* SPDX-License-Identifier: Apache-2.0 */
/* Completion without a context: the layout that each value of a program gets, as text and value by value. */
#ifndef TRAMA_COMPLETE_H
#define TRAMA_COMPLETE_H

#include "trama_program.h"

TRAMA_API_BEGIN

/* Completes a copy of the program and writes one line per value: name, type, shape, "on MESH as LAYOUT", then its stage
 * and "rests in host memory" if it is marked so. The order of processes precedes these lines, if trama_order set one; a
 * line per conflict follows them. Then a line tells, for each change of layout that takes bytes, the op with its line
 * in the user's program, the value, both layouts, the bytes, the reason, and the next best layouts of the op; and for
 * each op that reads neighbours the operands, the bytes, and its next best layouts. The last line has the sum of the
 * bytes, and the bound of trama_completion_bytes, for which it searches. nominal (>= 1) is the extent that stands for
 * TRAMA_ANY; it is halved until each tensor has at most 2^60 bytes. Errors: the program's first error; E_LAYOUT,
 * E_ARGUMENT, E_ORDER and E_MEMORY as of trama_compile. *text is set on TRAMA_OK only; trama_text_free frees it. */
trama_status trama_complete_text(const trama_program *program, int64_t nominal, char **text);

typedef struct trama_completion trama_completion; /* completed layouts of a program as it was then */

/* The same completion as an object, for the queries below. Errors as above; *completion is set on TRAMA_OK only. The
 * caller destroys it; destroying nulls *completion, and NULL is allowed. */
trama_status trama_completion_create(const trama_program *program, int64_t nominal, trama_completion **completion);
void trama_completion_destroy(trama_completion **completion);

/* The completed mesh, layout, device and stage of a value (trama_annotation_mesh and its like return the user's own
 * annotations). Of several equal meshes the first names the axes. No axis of the layout is open. The device is "cpu"
 * where the value rests in host memory, else NULL. A value that was not in the program, and a result of trama_minimize,
 * trama_assign or trama_assign_if, has mesh and device NULL, stage TRAMA_NO_STAGE, and no layout: false, *layout
 * unchanged. Meshes and masks live as long as the completion. */
const trama_mesh *trama_completion_mesh(const trama_completion *completion, const trama_value *value);
bool trama_completion_layout(const trama_completion *completion, const trama_value *value, trama_layout *layout);
const char *trama_completion_device(const trama_completion *completion, const trama_value *value);
int trama_completion_stage(const trama_completion *completion, const trama_value *value);

/* The mesh on which the op that made the value computes, and the layouts of its operand i and result i there. An
 * operand in another layout is resharded before the op, a value in another layout than the result after it. NULL and
 * false as above, also for values that no op made and for an i out of range; of the layouts also where the op's
 * split form (trama_op.h) replaces it: several ops compute the value then, and trama_complete_text shows theirs. */
const trama_mesh *trama_completion_op_mesh(const trama_completion *completion, const trama_value *value);
bool trama_completion_operand(const trama_completion *completion, const trama_value *value, int i,
                              trama_layout *layout);
bool trama_completion_result(const trama_completion *completion, const trama_value *value, int i, trama_layout *layout);

/* The bytes that the process receives which receives most, in a run of all ops of the program, summed over the changes
 * of layout and over the ops that read neighbours: of the completed layouts, and a bound. No layouts that keep the
 * annotations, and the program's limit of memory, receive fewer than *bound, where no process does more work
 * for an op than the busiest one does for it now, axes split a dim in the mesh's order, terms are those of sums, a
 * product reads terms only where an op made them, and split forms of ops (trama_op.h) are as chosen.
 *
 * Some ops and values stay as they are now: ops that accumulate, have a mask or an annotation of their
 * operands; ops with more than 256 choices of factors for the axes, as products have on three axes; values with more
 * layouts than that, or annotated along some axes; values that a target names; gradients that a target reads, and
 * their values; aliases.
 *
 * bytes and bound may be NULL; the bound takes a search, linear in the ops. E_ARGUMENT for NULL, E_MEMORY. */
trama_status trama_completion_bytes(const trama_completion *completion, int64_t *bytes, int64_t *bound);

/* The bytes of states on the process that keeps most, counted as trama_search_layouts_within limits them. E_ARGUMENT
 * for NULL, E_MEMORY. */
trama_status trama_completion_state_bytes(const trama_completion *completion, int64_t *bytes);

/* The bytes that the process with the most needs at a time, counted as trama_search_layouts_in_memory limits them.
 * Sums of merged gradients, which trama_compile adds, do not count. Errors as above. */
trama_status trama_completion_memory_bytes(const trama_completion *completion, int64_t *bytes);

TRAMA_API_END
#endif
