/* SPDX-License-Identifier: Apache-2.0 */
/* A program records symbolic values and the ops between them once, as if for one device.
 *
 * Builders return a value or NULL and pass NULL through; the first error stays on the program (and in trama_error()),
 * so a chain of calls needs one check, by trama_compile or trama_program_status. Builders are macros that pass the
 * caller's file and line to the function of the same name with _at. The program owns its values.
 *
 * Ops are recorded in the order of the calls, and a value without a name gets one from its op and number: "exp4". C
 * does not define which argument of a call is evaluated first. In
 *
 *     trama_value *ratio = trama_div(trama_exp(x), trama_log(x));
 *
 * one compiler makes exp4 and log5, another makes log4 and exp5. The results are equal. To get equal names, for traces
 * and plans that are compared or for ranks whose programs come from several compilers, write each op as a statement:
 *
 *     trama_value *above = trama_exp(x), *below = trama_log(x);
 *     trama_value *quotient = trama_div(above, below);
 */
#ifndef TRAMA_PROGRAM_H
#define TRAMA_PROGRAM_H

#include "trama_layout.h"

TRAMA_API_BEGIN

typedef struct trama_program trama_program; /* recorded values and ops; owns its values and targets */
typedef struct trama_value trama_value;     /* the symbolic result of an op, an input, or state */
typedef struct trama_target trama_target;   /* a part of a program that one run computes */

trama_program *trama_program_create(void);           /* an empty program */
void trama_program_destroy(trama_program **program); /* frees a program with its values and targets; NULL is allowed */

/* TRAMA_OK or the first error of a builder; trama_program_error returns its message, "" without an error. */
trama_status trama_program_status(const trama_program *program);
const char *trama_program_error(const trama_program *program);

/* Clears the first error. Builders then continue from the values recorded before it, which stay. For eager programs. */
void trama_program_clear_error(trama_program *program);

/* One line for each value and op: names, shapes, annotations, the user's lines. NULL for NULL. trama_text_free frees
 * it. */
char *trama_program_text(const trama_program *program);

/* ---- Values ---- */

/* An input, fed at run time. Dims may be TRAMA_ANY. The name is copied and must be unique among inputs and
 * parameters. */
#define trama_input(program, name, dtype, shape) trama_input_at(TRAMA_HERE, program, name, dtype, shape)
trama_value *trama_input_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                            trama_shape shape);

/* The initial content of a parameter: element i is low + (high - low) * u(i). u(i) in [0, 1) are the numbers of
 * trama_uniform_fixed at step 0 for this seed and stream; the mesh does not matter. low == high gives a constant;
 * other ranges are of floats. */
typedef struct trama_init {
    double low, high;      /* the range */
    uint64_t seed, stream; /* of the random numbers */
} trama_init;

/* A parameter: state that lives from run to run. With a mask in its layout, the holders update it, and the other
 * processes receive it when an op there reads it. init NULL: zeros; C allows it in place, &(trama_init){.low = 1, .high
 * = 2}. Dims must be known. */
#define trama_parameter(program, name, dtype, shape, ...)                                                              \
    trama_parameter_at(TRAMA_HERE, program, name, dtype, shape, __VA_ARGS__)
trama_value *trama_parameter_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                                trama_shape shape, const trama_init *init);

/* Like trama_parameter, but trama_minimize never updates it. */
#define trama_state(program, name, dtype, shape, ...)                                                                  \
    trama_state_at(TRAMA_HERE, program, name, dtype, shape, __VA_ARGS__)
trama_value *trama_state_at(trama_where where, trama_program *program, const char *name, trama_dtype dtype,
                            trama_shape shape, const trama_init *init);

/* The initial content of a parameter or state, in place of its trama_init: data [shape] row-major, of its dtype, the
 * same on every rank; copied now. A later call replaces it. Returns the value. E_ARGUMENT for a value that is no state,
 * E_ORDER in eager mode once the value is placed. */
#define trama_initial(state, /* data */...) trama_initial_at(TRAMA_HERE, state, __VA_ARGS__)
trama_value *trama_initial_at(trama_where where, trama_value *state, const void *data);

/* A host array of count(shape) elements, row-major. It is copied now and replicated on the mesh where it is used. */
#define trama_constant(program, dtype, shape, data) trama_constant_at(TRAMA_HERE, program, dtype, shape, data)
trama_value *trama_constant_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                               const void *data);

trama_shape trama_value_shape(const trama_value *value); /* the global shape; ndim -1 for NULL */
trama_dtype trama_value_dtype(const trama_value *value); /* the element type; TRAMA_F32 for NULL */
const char *trama_value_name(const trama_value *value);  /* the given name, or op and number; "(null)" for NULL */

/* Renames a value; the name is copied. Returns the value. */
#define trama_value_rename(value, name) trama_value_rename_at(TRAMA_HERE, value, name)
trama_value *trama_value_rename_at(trama_where where, trama_value *value, const char *name);

/* ---- Annotation ---- */

/* Lays the value out on the mesh. layout is a text for trama_layout_parse; "?" leaves an axis open, and other
 * placements are final, R included. Returns the value. E_LAYOUT for a layout that does not fit or differs from an
 * earlier annotation, E_ORDER in eager mode once the value is computed. */
#define trama_shard(value, mesh, layout) trama_shard_at(TRAMA_HERE, value, mesh, layout)
trama_value *trama_shard_at(trama_where where, trama_value *value, const trama_mesh *mesh, const char *layout);

/* Fixes the layouts on which the op that made the value computes: one text for each operand in order, then one for each
 * result (as for trama_shard); NULL leaves it open. Compiling fails where the op's rule cannot compute on these
 * layouts. Returns the value. E_LAYOUT for layouts that do not fit or are fixed already, E_ORDER in eager mode. */
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

/* trama_shard_begin opens a scope that trama_shard_end closes. Every op recorded in it computes on the mesh. For these
 * ops the named values have the given layouts: an operand is resharded, a result is laid out, as by trama_shard_op.
 * Pairs of a name and a text for trama_layout_parse follow the mesh, or NULL for no pairs:
 *
 *     trama_shard_begin(program, mesh, "x", "dp,-", "hidden", "dp,mp");
 *     trama_value *hidden = trama_value_rename(trama_relu(trama_matmul(x, w)), "hidden");
 *     trama_shard_end(program);
 *
 * An operand may be on any mesh, and its gradient goes back there. A result is found by the name that it has at the end
 * of the scope; in eager mode by the name that its op gives it, since it is computed before it can be renamed. A scope
 * leaves trama_reshard, updates of state, gradients and optimizers alone. trama_shard and trama_shard_op of one value
 * or op override the scope. Scopes nest; only the innermost counts.
 *
 * Errors of begin: E_ARGUMENT for a list without pairs, an empty name or a repeated name; E_LAYOUT as of trama_shard. A
 * layout that does not fit is an error of the op that uses it. Errors of end: E_ORDER without a begin; E_ARGUMENT for a
 * name that no op of the scope reads or makes. Compiling inside a scope is E_ORDER. */
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
    trama_shard_begin_at(TRAMA_HERE, program, mesh,                                                                    \
                         (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),                          \
                         (const char *const[]){__VA_ARGS__})
#endif
#define trama_shard_end(program) trama_shard_end_at(TRAMA_HERE, program)
trama_status trama_shard_end_at(trama_where where, trama_program *program);

enum { TRAMA_NO_STAGE = -1 /* see trama_stage */ };

/* Sets the pipeline stage, from 0, of the ops recorded from here on; TRAMA_NO_STAGE: no stage. The stage is recorded
 * and shown; programs with stages cannot be compiled yet. E_ARGUMENT for other numbers, E_UNSUPPORTED in eager mode. */
#define trama_stage(program, stage) trama_stage_at(TRAMA_HERE, program, stage)
trama_status trama_stage_at(trama_where where, trama_program *program, int stage);

/* Keeps the value in host memory, device "cpu"; it is on the device only while an op uses it. The request is recorded
 * and shown; programs that offload cannot be compiled yet. Returns the value. E_ARGUMENT for another device,
 * E_UNSUPPORTED in eager mode. */
#define trama_offload(value, device) trama_offload_at(TRAMA_HERE, value, device)
trama_value *trama_offload_at(trama_where where, trama_value *value, const char *device);

/* Sets the physical order: process i runs on place order[i]. Without it the mapper assigns places by traffic and
 * distance; with weights on a mesh, which describe unequal places, process i runs on place i. order [n] is a
 * permutation of 0 .. n-1, copied. trama_context_describe lists the places by number; with fewer than n places, process
 * i runs on place order[i] * places / n, rounded down. n may exceed the number of processes. An id of a mesh from n on
 * is E_ARGUMENT here, E_LAYOUT if the mesh comes later. E_ARGUMENT for a list that is no permutation and for an order
 * that differs from an earlier one; E_ORDER in eager mode once a value is computed. */
#define trama_order(program, n, order) trama_order_at(TRAMA_HERE, program, n, order)
trama_status trama_order_at(trama_where where, trama_program *program, int n, const int *order);

/* Lets completion search for layouts with fewer received bytes than its rules find. It changes the layouts of ops and
 * of values without an annotation, inputs and state among them. No process does more work for an op than the busiest
 * one does without a search. The search is the same on all ranks. Rounding may differ, since sums are split in other
 * ways. A run of each target counts once, also where gradients are merged over micro-steps; TRAMA_ANY counts as the
 * context's nominal extent. trama_complete_text tells the bytes, and how far they are from the fewest. E_UNSUPPORTED in
 * eager mode, which lays out one op after the other. */
#define trama_search_layouts(program) trama_search_layouts_at(TRAMA_HERE, program)
trama_status trama_search_layouts_at(trama_where where, trama_program *program);

/* The same among the layouts by which no process keeps more than state_bytes (> 0) of states: parameters, the state of
 * optimizers, and other states. A state counts with its largest piece on each process of its mesh, masked ones among
 * them. So a limit splits states where that moves the fewest bytes, as FSDP does for a large batch. Sums of merged
 * gradients, inputs, and buffers of runs do not count: trama_search_layouts_in_memory limits these, too. The latest
 * call counts. E_ARGUMENT for other state_bytes. Completion fails with E_MEMORY where it finds no such layouts, and
 * says how many bytes those with the fewest take. */
#define trama_search_layouts_within(program, state_bytes)                                                              \
    trama_search_layouts_within_at(TRAMA_HERE, program, state_bytes)
trama_status trama_search_layouts_within_at(trama_where where, trama_program *program, int64_t state_bytes);

/* The same among the layouts by which no process needs more than `bytes` (> 0) at a time, of states and of other
 * values. States and constants stay, and values that a target names. Another value is there from the op that makes it,
 * an input from the start, to the last op that reads it or a copy of it, in the order of the program; a copy in another
 * layout from its first reader to its last; views share the memory of the value that they show. So a limit splits the
 * values that gradients read, too, as sequence parallelism does. Ops of all targets count as if they ran in one run;
 * where gradients are merged, the limit holds for plain steps and for micro-steps. Messages under way do not count;
 * results that fusion leaves out do. trama_rehearse tells the bytes that a plan needs: for decoders the count is 0.78
 * to 0.99 of its states, inputs, and buffers needed at a time. Errors as above. */
#define trama_search_layouts_in_memory(program, bytes) trama_search_layouts_in_memory_at(TRAMA_HERE, program, bytes)
trama_status trama_search_layouts_in_memory_at(trama_where where, trama_program *program, int64_t bytes);

/* ---- Annotations, read back and taken back ---- */

/* The annotations of a value, as the user wrote them. Completion changes none of them; trama_complete.h returns its
 * result. Meshes have the names and the parent that the user gave them. Meshes and masks live as long as the program.
 *
 * By trama_shard or trama_reshard: its mesh, NULL without an annotation; its layout with its mask, "?" as TRAMA_OPEN,
 * false and *layout unchanged without an annotation. By trama_offload: "cpu", or NULL. */
const trama_mesh *trama_annotation_mesh(const trama_value *value);
bool trama_annotation_layout(const trama_value *value, trama_layout *layout);
const char *trama_annotation_device(const trama_value *value);

/* The annotations of the op that made the value: its stage by trama_stage, else TRAMA_NO_STAGE; its mesh and the layout
 * of operand i by trama_shard_op or trama_shard_begin, open for an operand without an annotation; the annotation of its
 * result i. NULL, or false with *layout unchanged, for a value that no op made, without an annotation, and for i out of
 * range. */
int trama_annotation_stage(const trama_value *value);
const trama_mesh *trama_annotation_op_mesh(const trama_value *value);
bool trama_annotation_operand(const trama_value *value, int i, trama_layout *layout);
bool trama_annotation_result(const trama_value *value, int i, trama_layout *layout);

/* Removes all annotations of the value and of the op that made it: layout and mesh, device, the op's layouts, mesh and
 * stage. They can be set again. Returns the value. E_LAYOUT for a result of trama_reshard, E_ORDER in eager mode once
 * the value is computed. */
#define trama_annotation_clear(value) trama_annotation_clear_at(TRAMA_HERE, value)
trama_value *trama_annotation_clear_at(trama_where where, trama_value *value);

/* ---- Gradients and targets ---- */

/* The gradient of the scalar loss with respect to x, as a value; a zero constant where loss does not depend on x. A
 * partial gradient in a target's list is reduced to the layout of x; elsewhere it keeps the layout in which it is
 * computed. */
#define trama_gradient(loss, x) trama_gradient_at(TRAMA_HERE, loss, x)
trama_value *trama_gradient_at(trama_where where, trama_value *loss, trama_value *x);

/* Writes the value into the state at the end of a run. The result only goes into trama_target_create. */
#define trama_assign(state, value) trama_assign_at(TRAMA_HERE, state, value)
trama_value *trama_assign_at(trama_where where, trama_value *state, trama_value *value);

/* Writes the value into the state at the end of a run if condition, a scalar, is not 0; else the state keeps its
 * content. */
#define trama_assign_if(state, value, condition) trama_assign_if_at(TRAMA_HERE, state, value, condition)
trama_value *trama_assign_if_at(trama_where where, trama_value *state, trama_value *value, trama_value *condition);

/* A target: one run of it computes everything that the listed values need. The listed values can be read after a run.
 * The name is copied and must be unique. E_ARGUMENT also for two updates of one state. */
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
#define trama_target_create(program, name, ...)                                                                        \
    trama_target_at(TRAMA_HERE, program, name, (int)(sizeof((trama_value *[]){__VA_ARGS__}) / sizeof(trama_value *)),  \
                    (trama_value *[]){__VA_ARGS__})
#endif

/* Kinds of gradient accumulation over micro-steps, for trama_gradient_merge in trama_optimizer.h.
 *
 * TRAMA_MERGE_AVG gives the gradient of one batch of all samples of the cycle. The number of samples of a micro-step is
 * the extent of the first TRAMA_ANY dim among the inputs of its target. TRAMA_MERGE_SUM adds the gradients as they are.
 * With | TRAMA_MERGE_SYNC_EACH each micro-step sums its gradients over the mesh first, so where parameters are split a
 * process keeps its part only. Without it a process keeps its own term of the whole gradient, and only each k-th
 * micro-step sends messages for it. */
typedef enum trama_merge_kind {
    TRAMA_MERGE_AVG = 0,      /* as one batch */
    TRAMA_MERGE_SUM = 1,      /* added as they are */
    TRAMA_MERGE_SYNC_EACH = 2 /* summed over the mesh in each micro-step */
} trama_merge_kind;

TRAMA_API_END
#endif
