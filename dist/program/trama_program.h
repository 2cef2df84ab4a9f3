/* SPDX-License-Identifier: Apache-2.0 */
/* A program: symbolic values and the ops between them, recorded once, written as if for one device.
 *
 * Builders return a value or NULL and pass NULL through; the first error stays on the program (and in trama_error()),
 * so that a chain of calls needs one check, trama_compile's or trama_program_status's. They are macros that pass the
 * caller's file and line to the function of the same name with _at. The program owns its values.
 *
 * Ops are recorded in the order of the calls, and values without a name get one from their number: "exp4". C does not say
 * which argument of a call is evaluated first, so that in
 *
 *     trama_value *ratio = trama_div(trama_exp(x), trama_log(x));
 *
 * one compiler makes exp4 and log5, another one log4 and exp5. The results are the same. Where the names shall be, too, for
 * traces and plans that are compared, or for ranks whose programs come from several compilers, each op is a statement:
 *
 *     trama_value *above = trama_exp(x), *below = trama_log(x);
 *     trama_value *quotient = trama_div(above, below);
 */
#ifndef TRAMA_PROGRAM_H
#define TRAMA_PROGRAM_H

#include "trama_layout.h"

TRAMA_API_BEGIN

typedef struct trama_program trama_program; /* owns its values and targets */
typedef struct trama_value trama_value;     /* the symbolic result of an op, an input, or state */
typedef struct trama_target trama_target;   /* a part of a program that is run */

trama_program *trama_program_create(void); /* empty */
void trama_program_destroy(trama_program **program); /* with its values and targets; NULL is allowed */

/* TRAMA_OK, or the first error of a builder; trama_program_error is its message, "" without one. */
trama_status trama_program_status(const trama_program *program);
const char *trama_program_error(const trama_program *program);

/* Forgets the first error, so that builders go on with what there is: for eager programs, where the values before it
 * stay. */
void trama_program_clear_error(trama_program *program);

/* One line a value and op: names, shapes, annotations, user's lines. NULL for NULL. trama_text_free frees it. */
char *trama_program_text(const trama_program *program);

/* ---- Values ---- */

/* Fed at run time. Dims may be TRAMA_ANY. The name is copied, and is unique among inputs and parameters. */
#define trama_input(program, name, dtype, shape) trama_input_at(TRAMA_HERE, program, name, dtype, shape)
trama_value *trama_input_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                            trama_shape shape);

/* How a parameter starts: element i is low + (high - low) * u(i), u uniform in [0, 1) as trama_uniform_fixed says with step 0, from the
 * stream of the seed; low == high is a constant. Independent of the mesh. */
typedef struct trama_init {
    double low, high;      /* the range */
    uint64_t seed, stream; /* of the random numbers */
} trama_init;

/* State that lives from run to run. Where its layout has a mask, its holders update it, and other processes receive it
 * when an op reads it there. init NULL: zeros; in C it may be written in place, &(trama_init){.low = 1, .high = 2}. Dims are
 * known. */
#define trama_parameter(program, name, dtype, shape, ...)                                                              \
    trama_parameter_at(TRAMA_HERE, program, name, dtype, shape, __VA_ARGS__)
trama_value *trama_parameter_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                                trama_shape shape, const trama_init *init);

/* State that trama_minimize leaves alone. */
#define trama_state(program, name, dtype, shape, ...)                                                                  \
    trama_state_at(TRAMA_HERE, program, name, dtype, shape, __VA_ARGS__)
trama_value *trama_state_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                            trama_shape shape, const trama_init *init);

/* A plain host array mixed in: count(shape) elements, row-major, copied now, replicated on the mesh where it is used.
 */
#define trama_constant(program, dtype, shape, data) trama_constant_at(TRAMA_HERE, program, dtype, shape, data)
trama_value *trama_constant_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                               const void *data);

trama_shape trama_value_shape(const trama_value *value); /* ndim -1 for NULL */
trama_dtype trama_value_dtype(const trama_value *value); /* TRAMA_F32 for NULL */
const char *trama_value_name(const trama_value *value); /* given, or made from op and number */

/* Another name for a value, copied. Returns the value. */
#define trama_value_rename(value, name) trama_value_rename_at(TRAMA_HERE, value, name)
trama_value *trama_value_rename_at(trama_where where, trama_value *value, const char *name);

/* ---- Annotation ---- */

/* Lays the value out on the mesh; layout is a text as trama_layout_parse takes, where "?" leaves an axis open. What is
 * written is final, R included. Returns the value. */
#define trama_shard(value, mesh, layout) trama_shard_at(TRAMA_HERE, value, mesh, layout)
trama_value *trama_shard_at(trama_where where, trama_value *value, const trama_mesh *mesh, const char *layout);

/* Fixes the layouts on which the op that made the value computes: a text for each operand in order, then one for each
 * result (as trama_shard); NULL says nothing. Where the op's rule cannot compute on them, compiling says so. Returns
 * the value. */
trama_value *trama_shard_op_at(trama_where where, trama_value *value, const trama_mesh *mesh, int n,
                               const char *const *layouts);
#ifdef __cplusplus
extern "C++" template <int n>
inline trama_value *trama_shard_op_list(trama_where where, trama_value *value, const trama_mesh *mesh,
                                        const char *const (&layouts)[n])
{
    return trama_shard_op_at(where, value, mesh, n, layouts);
}
#define trama_shard_op(value, mesh, ...) trama_shard_op_list(TRAMA_HERE, value, mesh, {__VA_ARGS__})
#else
#define trama_shard_op(value, mesh, ...)                                                                               \
    trama_shard_op_at(TRAMA_HERE, value, mesh, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),    \
                      (const char *const[]){__VA_ARGS__})
#endif

/* Between the two, every op that is recorded computes on the mesh, and the values named lie in the layouts given, for
 * these ops: an operand is brought there, a result is laid out so, as by trama_shard_op. After the mesh stand pairs of a name
 * and a text as trama_layout_parse takes, or NULL for none:
 *
 *     trama_shard_begin(program, mesh, "x", "dp,-", "hidden", "dp,mp");
 *     trama_value *hidden = trama_value_rename(trama_relu(trama_matmul(x, w)), "hidden");
 *     trama_shard_end(program);
 *
 * An operand comes from whatever mesh it is on, and its gradient goes back there. A result is found by the name that it
 * gets before the end; in eager mode by the name that its op gives it, since it is computed before it can be renamed.
 * trama_reshard, updates of state, gradients and optimizers are not touched. trama_shard and trama_shard_op of one value or
 * op overrule the scope. Scopes nest; of several the innermost alone counts.
 *
 * Errors of begin: E_ARGUMENT for lists that are no pairs, empty names and names that stand twice, E_LAYOUT as of
 * trama_shard; a layout that does not fit is an error of the op that meets it. Errors of end: E_ORDER without a begin;
 * E_ARGUMENT for a name that no op of the scope reads or makes. Compiling inside is E_ORDER. */
trama_status trama_shard_begin_at(trama_where where, trama_program *program, const trama_mesh *mesh, int n,
                                  const char *const *layouts);
#ifdef __cplusplus
extern "C++" template <int n>
inline trama_status trama_shard_begin_list(trama_where where, trama_program *program, const trama_mesh *mesh,
                                           const char *const (&layouts)[n])
{
    return trama_shard_begin_at(where, program, mesh, n, layouts);
}
#define trama_shard_begin(program, mesh, ...) trama_shard_begin_list(TRAMA_HERE, program, mesh, {__VA_ARGS__})
#else
#define trama_shard_begin(program, mesh, ...)                                                                          \
    trama_shard_begin_at(TRAMA_HERE, program, mesh, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), \
                         (const char *const[]){__VA_ARGS__})
#endif
#define trama_shard_end(program) trama_shard_end_at(TRAMA_HERE, program)
trama_status trama_shard_end_at(trama_where where, trama_program *program);

enum { TRAMA_NO_STAGE = -1 /* see trama_stage */ };

/* The pipeline stage, from 0, of the ops recorded from here on; TRAMA_NO_STAGE: of none. Recorded and shown; programs
 * with stages cannot be compiled yet. E_ARGUMENT for other numbers. */
#define trama_stage(program, stage) trama_stage_at(TRAMA_HERE, program, stage)
trama_status trama_stage_at(trama_where where, trama_program *program, int stage);

/* The value rests in host memory, device "cpu", and comes to the device only while it is used. Recorded and shown;
 * programs that offload cannot be compiled yet. Returns the value. */
#define trama_offload(value, device) trama_offload_at(TRAMA_HERE, value, device)
trama_value *trama_offload_at(trama_where where, trama_value *value, const char *device);

/* The physical order: process i runs on place order[i], where otherwise traffic and distances decide; where a mesh has
 * weights, which are for unequal places, process i runs on place i unless told. order [n] is a permutation of 0 .. n-1,
 * copied. Places are numbered as trama_context_describe lists them; where there are fewer than n, it is place
 * order[i] * places / n, rounded down. n may be above the number of processes, but no id of a mesh may reach it:
 * E_ARGUMENT here, E_LAYOUT where the mesh comes in later. E_ARGUMENT for what is no permutation, and for another order
 * than before; E_ORDER in eager mode once a value is computed. */
#define trama_order(program, n, order) trama_order_at(TRAMA_HERE, program, n, order)
trama_status trama_order_at(trama_where where, trama_program *program, int n, const int *order);

/* ---- Annotations, read back and taken back ---- */

/* The annotations as the user wrote them. Completion changes none of them; trama_complete.h has what it found. Meshes have
 * the names and the parent that the user gave them; they, and the masks of layouts, live as long as the program.
 *
 * Of the value, by trama_shard or trama_reshard: its mesh, NULL where nothing was said; its layout with its mask, "?" as
 * TRAMA_OPEN, false and *layout unchanged where nothing was said. By trama_offload: "cpu", or NULL. */
const trama_mesh *trama_annotation_mesh(const trama_value *value);
bool trama_annotation_layout(const trama_value *value, trama_layout *layout);
const char *trama_annotation_device(const trama_value *value);

/* Of the op that made the value: its stage, by trama_stage, else TRAMA_NO_STAGE; its mesh and the layout of operand i, by
 * trama_shard_op or trama_shard_begin, open where nothing was said of that operand; and the annotation of its result i.
 * NULL, and false with *layout unchanged, for values that no op made, where nothing was said, and outside. */
int trama_annotation_stage(const trama_value *value);
const trama_mesh *trama_annotation_op_mesh(const trama_value *value);
bool trama_annotation_operand(const trama_value *value, int i, trama_layout *layout);
bool trama_annotation_result(const trama_value *value, int i, trama_layout *layout);

/* Takes back all that was said of the value and of the op that made it: layout and mesh, device, the op's layouts,
 * mesh and stage; they can be said anew. Returns the value. E_LAYOUT for what trama_reshard made, E_ORDER in eager mode once
 * the value is computed. */
#define trama_annotation_clear(value) trama_annotation_clear_at(TRAMA_HERE, value)
trama_value *trama_annotation_clear_at(trama_where where, trama_value *value);

/* ---- Gradients and targets ---- */

/* The gradient of a scalar with respect to a value, as a value. Zero (a constant) where loss does not depend on x. In a
 * target's list it lies, where it is partial, as x does; elsewhere in the layout in which it arises. */
#define trama_gradient(loss, x) trama_gradient_at(TRAMA_HERE, loss, x)
trama_value *trama_gradient_at(trama_where where, trama_value *loss, trama_value *x);

/* state takes the value's content at the end of a run; stands in trama_target_create. */
#define trama_assign(state, value) trama_assign_at(TRAMA_HERE, state, value)
trama_value *trama_assign_at(trama_where where, trama_value *state, trama_value *value);

/* state takes the value's content at the end of a run in which condition, a scalar, is not 0, and else keeps its own. */
#define trama_assign_if(state, value, condition) trama_assign_if_at(TRAMA_HERE, state, value, condition)
trama_value *trama_assign_if_at(trama_where where, trama_value *state, trama_value *value, trama_value *condition);

/* A part of the program that is run as one: whatever the listed values need. The values listed can be read after a run.
 */
trama_target *trama_target_at(trama_where where, trama_program *program, const char *name, int n,
                              trama_value *const *values);
#ifdef __cplusplus
extern "C++" template <int n>
inline trama_target *trama_target_list(trama_where where, trama_program *program, const char *name,
                                       trama_value *const (&values)[n])
{
    return trama_target_at(where, program, name, n, values);
}
#define trama_target_create(program, name, ...) trama_target_list(TRAMA_HERE, program, name, {__VA_ARGS__})
#else
#define trama_target_create(program, name, ...)                                                                           \
    trama_target_at(TRAMA_HERE, program, name, (int)(sizeof((trama_value *[]){__VA_ARGS__}) / sizeof(trama_value *)),  \
                    (trama_value *[]){__VA_ARGS__})
#endif

/* How a target adds gradients up over micro-steps; trama_gradient_merge in trama_optimizer.h asks for it.
 *
 * TRAMA_MERGE_AVG: as one batch of all samples of the cycle; a micro-step counts as many samples as the first dim TRAMA_ANY
 * among the inputs of its target is long. TRAMA_MERGE_SUM: gradients are added as they are. Either with | TRAMA_MERGE_SYNC_EACH:
 * each micro-step sums its gradients over the mesh first, so that where parameters are split a process keeps its part
 * of them only; else it keeps its own term of the whole, and only each k-th micro-step moves something. */
typedef enum trama_merge_kind {
    TRAMA_MERGE_AVG = 0,     /* as one batch */
    TRAMA_MERGE_SUM = 1,    /* added as they are */
    TRAMA_MERGE_SYNC_EACH = 2 /* summed over the mesh in each micro-step */
} trama_merge_kind;

TRAMA_API_END
#endif
