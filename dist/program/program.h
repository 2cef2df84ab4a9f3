/* SPDX-License-Identifier: Apache-2.0 */
/* Programs inside dist: values, nodes, targets. Each has a number, which indexes tables of other rooms. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "hash_table.h"
#include "layout.h"
#include "ops.h"
#include "rule_pool.h"
#include "trama_program.h"

typedef enum { VALUE_INPUT, VALUE_STATE, VALUE_CONSTANT, VALUE_RESULT, VALUE_EFFECT } value_kind;

/* The user's layouts for the operands of one op. The layouts of results are on the results. */
typedef struct op_fixed {
    const trama_mesh *mesh;
    const trama_mesh *given;             /* the mesh as the user gave it; NULL: by no call of the user's */
    trama_layout in[TRAMA_MAX_OPERANDS]; /* open where nothing was said */
    trama_where where;
    bool by_scope; /* said for all ops between trama_shard_begin and trama_shard_end */
} op_fixed;

/* The role of a node. All but NODE_FORWARD are laid out by forward inference only. */
typedef enum node_role {
    NODE_FORWARD,
    NODE_GRADIENT, /* made by a gradient, or by the user from values that are not forward */
    NODE_MERGE,    /* adds gradients up over micro-steps */
    NODE_UPDATE    /* of an optimizer */
} node_role;

typedef struct trama_node {
    trama_program *program;
    int id;
    const trama_op *op;
    const trama_attributes *attributes; /* with the node; or those that are all 0 */
    trama_value **in, **out;            /* [op->n_in], [op->n_out], with the node, as gradient_of */
    const trama_rule *rule;             /* of the program's pool */
    trama_where where;
    op_fixed *fixed; /* owned; NULL: the rule decides */
    int stage;       /* 1 + the pipeline stage; 0: none */
    node_role role;
    unsigned wants;                  /* while gradients are derived: operands whose gradient is asked for */
    const trama_value **gradient_of; /* [op->n_in] the result of which operand t is the gradient, where this node
                                        derives those of that result's op; else NULL */
} trama_node;

/* The user's call that annotated a value. */
typedef struct annotation {
    const trama_mesh *given; /* the mesh with the user's names and parent; NULL: by no call of the user's */
    trama_where where;
} annotation;

/* VALUE_STATE */
typedef struct state_value {
    trama_init init;
    int updated_by;             /* 1 + the number of the last node that writes it; 0: none */
    bool trainable;             /* a parameter */
    bool terms;                 /* may be partial: it lies like the value that it is updated with */
    const trama_value *slot_of; /* the parameter whose optimizer keeps it; NULL: it is no slot */
    int64_t share_bytes;        /* of a trained parameter, as its optimizer has it */
} state_value;

/* The part of a value that is a gradient. */
typedef struct gradient_value {
    const trama_value *of; /* the value that it is the gradient of; NULL */
    const trama_value
        *colocated;      /* it is on the mesh of this value, and if it comes from another one lies like it; NULL */
    bool reduce_at_once; /* where it is partial, completion lays it as `of`: more than an update reads it */
} gradient_value;

/* Of a VALUE_EFFECT: the values that it updates, and for trama_minimize the rest. */
typedef struct update_value {
    ARRAY(trama_value *) updated;
    ARRAY(trama_value *) trained, raw; /* parameters, and their gradients as they are derived */
    int first, end;                    /* the nodes that make updates of them */
    ARRAY(trama_value *) parts;        /* by trama_step_part, NULL where it has no such one */
} update_value;

/* An extent that is only known when fed, as an estimate: times * fed^power, where all dims are fed alike. */
typedef struct fed_extent {
    float times;
    int power;
} fed_extent;

struct trama_value {
    trama_program *program;
    int id;
    value_kind kind;
    trama_dtype dtype;
    trama_shape shape; /* TRAMA_ANY where only known when fed */
    fed_extent *open;  /* [ndim] of such dims. Owned; NULL: each once what is fed */
    char *name;
    trama_where where;
    trama_node *node; /* VALUE_RESULT: its op, and which result it is */
    int result;
    void *data;             /* VALUE_CONSTANT; VALUE_STATE: the initial content, NULL: by state.init */
    const trama_mesh *mesh; /* annotated: the program's own copy; NULL: not annotated */
    trama_layout *layout;   /* with it, owned; program_lay_out sets it */
    annotation annotated;
    bool computed; /* by a session, or placed by it: annotating it comes too late */
    bool offload;  /* rests in host memory */
    bool fetched;  /* in a target: the user may read it */
    gradient_value gradient;
    state_value *state;   /* VALUE_STATE: owned; else an empty one for all */
    update_value *update; /* VALUE_EFFECT: owned; else an empty one for all */
};

/* Gradient accumulation over k micro-steps; k 0: none. */
typedef struct target_merge {
    int64_t k;
    unsigned how; /* trama_merge_kind */
    trama_where where;
} target_merge;

struct trama_target {
    trama_program *program;
    int id;
    char *name;
    trama_where where;
    ARRAY(trama_value *) values;
    target_merge merge;
};

/* The gradients of one loss that were derived so far, by value id; NULL: not derived. */
typedef struct gradient_table {
    const trama_value *loss;
    ARRAY(trama_value *) of;
} gradient_table;

/* A result of trama_merged_gradient, and the result of trama_minimize that it is for. */
typedef struct merged_gradient {
    trama_value *value;
    const trama_value *minimized;
} merged_gradient;

/* The user's order: the place of each process. */
typedef struct process_order {
    int n;      /* 0: nothing was said */
    int *place; /* [n] a permutation */
    trama_where where;
} process_order;

/* A scope from trama_shard_begin to trama_shard_end, and its layouts by name. */
typedef struct scope_layout {
    char *name, *layout; /* of a value, in words */
    bool met;            /* an op of the scope reads or makes a value of that name */
} scope_layout;
typedef struct shard_scope {
    const trama_mesh *mesh, *given; /* the program's own: the one that equal meshes share, and this one */
    trama_where where;
    int first_node; /* recorded in it */
    ARRAY(scope_layout) layouts;
} shard_scope;

/* Where completion starts for values without an annotation. Unlike an annotation a start does not bind a search. */
typedef struct start_split {
    int value; /* its id */
    int dim;   /* that axes of the mesh split, in their order */
    unsigned axes;
} start_split;
typedef struct start_splits {
    const trama_mesh *mesh; /* one of the program's; NULL: there are none */
    int64_t nominal;        /* extent of TRAMA_ANY for which they were chosen; 0: none */
    ARRAY(start_split) at;
} start_splits;

/* Completion searches for layouts with fewer bytes. */
typedef struct search_request {
    bool asked;
    int64_t limit;  /* bytes that a process may need at a time; 0: any */
    bool of_states; /* the limit counts states alone */
    bool nearest;   /* where no layouts keep the limit, those that are nearest to it */
    trama_where where;
} search_request;

/* Eager mode: a session runs each op of its program as soon as the op and its annotations are recorded. */
typedef struct program_session program_session;
struct program_session {
    void (*run)(program_session *session, trama_node *node);
    const trama_mesh *(*mesh_of)(const program_session *session, const trama_value *computed);
    bool started; /* a value was computed or placed, so that processes have their places */
};

struct trama_program {
    trama_status status;
    char *error;
    ARRAY(trama_value *) values;
    hash_table names; /* of inputs and state among the values 0 .. named - 1; entries may be old ones */
    int named;
    ARRAY(trama_node *) nodes;
    rule_pool rules; /* of the nodes */
    ARRAY(trama_target *) targets;
    ARRAY(trama_mesh *) meshes; /* own copies, equal ones once */
    ARRAY(trama_mesh *) given;  /* own copies of meshes that differ from their equals by names or parents */
    ARRAY(gradient_table) gradients;
    ARRAY(merged_gradient) merged; /* of recorded programs; in eager mode none */
    node_role role;                /* of nodes appended now */
    int stage;                     /* of nodes appended now; 1 + the stage, 0: none */
    process_order order;
    start_splits start;
    search_request search;
    ARRAY(shard_scope) scopes; /* the innermost is the last */
    const trama_mesh *ops_on;  /* the mesh of nodes appended now; NULL: not said */
    /* The state that counts runs which draw random numbers, and its content in the current run, which eager programs do
     * not have; NULL until an op needs them. */
    trama_value *run_counter, *run;
    program_session *session; /* it runs the ops; NULL: they are recorded only. Not owned */
};

trama_program *program_new(void); /* trama_program_create without its check of memory, within another call */

/* True where memory was short while a builder recorded; E_MEMORY is then an error of the program. */
bool program_is_short(trama_program *program, trama_where where, const char *call);

/* Keeps the first error on the program. Returns NULL, for builders to return. */
void *program_fail(trama_program *program, trama_where where, trama_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Keeps the thread's last message as the program's first error. Returns NULL. */
void *program_keep_error(trama_program *program, trama_status status);

/* The input or state with that name, other than `except`; or NULL. */
trama_value *program_leaf_named(trama_program *p, const char *name, const trama_value *except);

trama_value *program_value(trama_program *program, trama_where where, value_kind kind, trama_dtype dtype,
                           trama_shape shape, const char *name);

void program_lay_out(trama_value *value, trama_layout layout); /* its annotation's layout, without the mesh */
void program_value_parts(trama_value *value); /* sets layout, state and update, which a new value lacks */
void program_value_free(trama_value *value);  /* which is no longer in a program's list */
trama_node *program_node_new(const trama_op *op, const trama_attributes *attributes); /* NULL: all are 0 */
void program_node_free(trama_node *node);

/* The program's own copy of a mesh. */
const trama_mesh *program_mesh(trama_program *program, const trama_mesh *mesh);
/* The program's own copy that has the same names and parents. */
const trama_mesh *program_given_mesh(trama_program *program, const trama_mesh *mesh);
/* Parses a layout with the axis names of `given`; its mask is that of the program's mesh. */
trama_status program_layout(trama_program *program, const trama_mesh *given, int ndim, const char *source,
                            trama_layout *layout);
/* Whether elements of the value can be combined as its partial axes say; else the program fails. */
bool program_combines(trama_where where, trama_program *program, const char *call, const trama_value *value,
                      const trama_mesh *mesh, const trama_layout *layout);
/* Whether the user's order, if there is one, has all processes of the mesh; keeps the error, which names `call`. */
bool program_has_order(trama_where where, trama_program *program, const char *call, const char *name,
                       const trama_mesh *mesh);

/* scope.c: apply the open scope to an appended node, and to a renamed value; false with an error on the program.
 * scope_check_closed is E_ORDER, with `call` in the message, where a scope is open. */
bool scope_lay_out(trama_node *node);
bool scope_name(trama_where where, trama_value *value);
trama_status scope_check_closed(trama_where where, const trama_program *program, const char *call);
void scopes_free(trama_program *program);
/* Whether a mesh has weights. They describe the places that processes have in order. */
bool program_is_weighted(const trama_program *program);

/* The element type of a result before the op sets it. */
#define DTYPE_UNSAID ((trama_dtype)-1)

/* The element type of the operands, f32 without operands; E_DTYPE where they have several. */
trama_status node_same_dtype(const trama_node *node, trama_dtype *dtype);

/* Records an op without program_run, and returns result 0, whose node has the others. A NULL operand gives NULL. */
trama_value *program_record(trama_program *program, trama_where where, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes);

/* Ends the annotations of the op that made the result: the program's session, if there is one, runs the op. Returns the
 * result, or NULL where the program keeps an error. */
trama_value *program_run(trama_value *result);

/* program_record, then program_run, for an op without further annotations. */
trama_value *program_append(trama_program *program, trama_where where, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes);

/* A deep copy with equal ids, for a compiled program, which later calls of the user must not change. Its status is
 * E_MEMORY where the system has no room for the constants. */
trama_program *program_copy(const trama_program *program);

/* Marks in needed[node id] the nodes that the values (effects included) need. */
void program_closure(const trama_program *program, int n, trama_value *const *values, bool *needed);

/* Sets the concrete shapes [value id] of all values. The caller sets those of inputs and of results of nodes that are
 * not needed. rules[node id] gets the resolved factor table. E_SHAPE names the op and the dims that do not agree.
 * needed NULL: all nodes. */
trama_status program_resolve(const trama_program *program, const bool *needed, trama_shape *shapes, node_rules *rules);

/* Extents where `nominal` is fed for TRAMA_ANY: of a factor of the node's rule, and of a value. One that is divided is
 * rounded. */
int64_t node_nominal_extent(const trama_node *node, int factor, int64_t nominal);
trama_shape value_nominal_shape(const trama_value *value, int64_t nominal);
/* Set the member `open` of a result, and of a new value of equal shape. */
void value_open_extents(trama_value *result);
void value_copy_open(trama_value *to, const trama_value *from);

/* Operand t, or from n_in on a result. */
static inline trama_value *node_tensor(const trama_node *node, int t)
{
    return t < node->op->n_in ? node->in[t] : node->out[t - node->op->n_in];
}
/* Whether the op needs the elements of tensor t, not only its shape: of an operand where it reads them, of each result.
 */
static inline bool node_reads(const trama_node *node, int t)
{
    return !(node->op->shape_only >> t & 1);
}
/* Whether it writes operand t, a state, anew. */
static inline bool node_updates(const trama_node *node, int t)
{
    return node->op->updates >> t & 1;
}

/* Whether the value is state, which lives from run to run. */
static inline bool value_is_state(const trama_value *v)
{
    return v->kind == VALUE_STATE;
}
/* Whether the value needs no other value of the run: it is fed, kept, constant, or from an op without operands. */
static inline bool value_is_leaf(const trama_value *v)
{
    return v->kind == VALUE_INPUT || v->kind == VALUE_STATE || v->kind == VALUE_CONSTANT ||
           (v->kind == VALUE_RESULT && v->node->op->n_in == 0);
}
/* The state that the value is, or over which updates wrote it; NULL for others. */
trama_value *value_storage(trama_value *value);
/* The value in whose buffer it may lie, as a part of it or in other dims; itself where that is none. */
const trama_value *value_buffer(const trama_value *value);

void value_text(text *out, const trama_value *value);     /* name and shape, for messages */
void order_text(text *out, const process_order *order);   /* a line, or nothing */
void value_in_words(text *out, const trama_value *value); /* all that was said of it, without the user's line */

/* A program as lines without addresses. Programs with equal lines compute the same. */
typedef struct program_line {
    size_t from; /* its first letter */
    trama_where where;
} program_line;
typedef struct program_lines {
    text words; /* each line ends with a 0 */
    ARRAY(program_line) lines;
} program_lines;
void program_in_lines(const trama_program *program, program_lines *lines);
void program_lines_free(program_lines *lines);
static inline const char *program_line_words(const program_lines *l, int i)
{
    return l->words.at + l->lines.at[i].from;
}

/* For gradients of op families: sums d to the shape of its operand if that was broadcast. */
trama_value *gradient_unbroadcast(trama_value *d, trama_value *operand);
static inline bool node_wants(const trama_node *node, int operand)
{
    return node->wants >> operand & 1;
}
/* Whether loss is a float scalar; keeps the error, which names `what`. */
bool program_check_loss(trama_where where, const char *what, trama_value *loss);
/* Derives the gradients of loss for n values; d[i] is NULL where loss does not depend on x[i]. */
bool program_gradients(trama_where where, trama_value *loss, int n, trama_value *const *x, trama_value **d);

#endif
