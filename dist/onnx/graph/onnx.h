/* SPDX-License-Identifier: Apache-2.0 */
/* An import inside this room: the names of a graph, one node as its builder sees it, and the rows of the table of ops.
 */
#ifndef ONNX_H
#define ONNX_H

#include "host_tensor.h"
#include "program.h"
#include "trama_ops.h"

enum {
    ONNX_NEWEST = 21, /* the newest operator set that the table describes */
    ONNX_MANY = 1 << 20,
    ONNX_LIST = 64 /* most numbers of an attribute or of a constant that is read as a list */
};

/* A name of the graph. It stands for a value, for a tensor that is known while loading, or for both once an op read the
 * tensor. */
typedef struct onnx_name {
    char *name;
    trama_value *value;
    host_tensor *host;
    bool initializer;
} onnx_name;

/* A dim of an input that has a name, and the first dim of that name, as origins of open extents; or without a name a
 * joined dim, and the sum that it has. */
typedef struct onnx_symbol {
    const char *name;
    int64_t origin, same_as;
} onnx_symbol;

/* A vector that is as long as the dim of that origin, once it is fed. */
typedef struct onnx_trues {
    int64_t origin;
    trama_value *vector;
} onnx_trues;

/* The origin of a sum. A term is an origin, or minus a number. */
typedef struct onnx_sum {
    int64_t term[2], origin;
} onnx_sum;

struct trama_onnx {
    trama_program *program;
    trama_where where;
    ARRAY(onnx_name) names;
    int *slot; /* [slots] hash table: 1 + the index of a name, or 0 */
    int slots;
    ARRAY(int) lists[3]; /* by trama_onnx_list: indices of names */
    /* while loading */
    ARRAY(onnx_symbol) symbols;
    ARRAY(onnx_trues) trues;
    ARRAY(onnx_sum) sums;
    const trama_onnx_source *source;
    const trama_onnx_options *options;
    const char *label; /* of the model, for messages */
    const Onnx__ModelProto *proto;
};

typedef struct onnx_node onnx_node;

/* A row of the table: the form that one op has in operator sets since to until. A builder sets out[i] for the outputs
 * that it can give. A fold computes output 0 out of known operands; NULL: it cannot, and the builder goes on. */
typedef struct onnx_op {
    const char *domain, *name;
    int since, until;
    int n_in, most_in, n_out;
    const char *attributes; /* names of allowed attributes */
    void (*build)(onnx_node *n, trama_value **out);
    host_tensor *(*fold)(onnx_node *n);
    bool fold_shapes; /* the fold needs the shapes of operands only */
    trama_value *(*unary)(trama_where where, trama_value *x);
    trama_value *(*binary)(trama_where where, trama_value *x, trama_value *y);
    trama_value *(*reduce)(trama_where where, trama_value *x, int n, const int *dims, bool keep_dim);
    trama_value *(*along)(onnx_node *n, trama_value *x, int dim);
    number (*number)(const number *operand);
    int typed;          /* of fold_numbers: the operand whose dtype the result has; TYPED_BOOL */
    double numbers[2];  /* of the builder */
    unsigned constants; /* bit i: operand i must be known while loading */
} onnx_op;
enum { TYPED_BOOL = -1 };

struct onnx_node {
    trama_onnx *graph;
    const Onnx__NodeProto *proto;
    const onnx_op *op;
    int opset;
    trama_where where;
};

/* The row of an op in an operator set; NULL: none, and *others tells whether another set has one. */
const onnx_op *onnx_op_find(const char *domain, const char *name, int opset, bool *others);
bool onnx_domain_is_default(const char *domain);

/* ---- Names ---- */

onnx_name *onnx_find(const trama_onnx *graph, const char *name);
/* A new name; NULL with an error on the program where it is empty or taken. It is valid until the next one. */
onnx_name *onnx_add(trama_onnx *graph, const char *name, const char *what);
/* The value of a name. A known tensor becomes a parameter, a state or a constant when it is first read. */
trama_value *onnx_value(trama_onnx *graph, onnx_name *name, bool trained);
/* Appends the graph of graph->proto to the program; false with an error on the program. */
bool onnx_walk(trama_onnx *graph);
/* Keeps an error of the model on the program; returns NULL. */
void *onnx_fail(trama_onnx *graph, trama_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* onnx_extent.c: the origin of a dim that is only known when fed, equal for dims that always have one extent; and the
 * name of a dim of an input. */
int64_t onnx_origin(const trama_onnx *graph, const trama_value *v, int d);
int64_t onnx_origin_named(const trama_onnx *graph, const char *name); /* 0: no dim has the name */
void onnx_name_extent(trama_onnx *graph, const trama_value *input, int d, const char *name);
/* onnx_graph.c: the extent that an option gives dims of a name, else TRAMA_ANY. */
int64_t onnx_given_extent(const trama_onnx *graph, const char *name);
/* onnx_sums.c: x[0] + x[1] and x[0] - x[1] where extents are among them, as origins of their own; open is OPEN_COMPUTED
 * where there is no such one. onnx_name_sum tells the sum of two joined dims. */
number onnx_sum_of(trama_onnx *graph, const number *x);
number onnx_difference_of(const trama_onnx *graph, const number *x);
void onnx_name_sum(trama_onnx *graph, const trama_value *joined, int d, trama_value *const *parts);
/* Dims of inputs with names as "past + length" have that sum, where other inputs have dims of these names. */
void onnx_read_sums(trama_onnx *graph);

/* [extent] of true for an origin, and numbers of which some are extents; NULL for OPEN_COMPUTED. */
trama_value *onnx_trues_of(trama_onnx *graph, int64_t origin);
trama_value *onnx_extents_value(trama_onnx *graph, const host_tensor *t);
trama_value *onnx_extent_value(trama_onnx *graph, int64_t origin); /* one, as an i64 without dims */

/* ---- A node: every reader keeps an error that names the node, and then returns zeros ---- */

void *node_fail(onnx_node *n, trama_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *node_label(const onnx_node *n, char *buffer, size_t room);
bool node_check_attributes(onnx_node *n);

int node_inputs(const onnx_node *n);
bool node_has(const onnx_node *n, int i); /* optional operands may have no name */
trama_value *node_in(onnx_node *n, int i);
trama_value *node_state(onnx_node *n, int i); /* a statistic: not to be trained */
trama_shape node_shape(onnx_node *n, int i);
/* The content of operand i where it is known while loading, or NULL without an error. */
const host_tensor *node_host(onnx_node *n, int i);
/* Whether all operands have a known content. That of parameters does not count, since training changes them. */
bool node_known(onnx_node *n);

/* Integers of a constant operand or of an attribute. */
typedef struct onnx_ints {
    int n;
    bool given;
    int64_t at[ONNX_LIST];
    int64_t open[ONNX_LIST]; /* the origins of extents that are only known when fed */
} onnx_ints;
onnx_ints node_ints(onnx_node *n, int i, const char *what);         /* given: the operand is there */
onnx_ints node_extents(onnx_node *n, int i, const char *what);      /* the same; some may only be known when fed */
bool node_number(onnx_node *n, int i, double otherwise, double *x); /* of a constant scalar */

bool attribute_has(onnx_node *n, const char *name);
int64_t attribute_int(onnx_node *n, const char *name, int64_t otherwise);
double attribute_real(onnx_node *n, const char *name, double otherwise);
onnx_ints attribute_ints(onnx_node *n, const char *name);
/* Whether a text attribute, or `otherwise` without it, is the word. */
/* The text of an attribute that must be there, which the caller frees; NULL with an error. */
char *attribute_text(onnx_node *n, const char *name);
bool attribute_is(onnx_node *n, const char *name, const char *otherwise, const char *word);
const Onnx__AttributeProto *attribute_find(onnx_node *n, const char *name);

/* The list in an attribute, in older sets, or in operand i. */
onnx_ints node_list(onnx_node *n, const char *attribute, int i);
onnx_ints node_extent_list(onnx_node *n, const char *attribute, int i); /* some may only be known when fed */
/* A dim of ndim dims, negative from the end; -1 with an error where it is not there. */
int node_dim(onnx_node *n, int64_t dim, int ndim);
/* The dims of a list as a set of bits. */
unsigned node_dims(onnx_node *n, const onnx_ints *list, int ndim);

/* ---- Builders and folds that several files of this room use ---- */

trama_value *build_broadcast(onnx_node *n, trama_value *x,
                             trama_shape shape); /* x [..] to shape, extents of 1 repeat */
trama_value *build_constant(onnx_node *n, trama_dtype dtype, trama_shape shape, const double *data);
trama_value *build_arange(onnx_node *n, trama_dtype dtype, int64_t count, int ndim, int dim); /* 0, 1, .. along dim */
/* The same [extent], for an extent that is only known when fed: for dim d of the result, by its origin. */
trama_value *build_count(onnx_node *n, trama_dtype dtype, int64_t origin, int d);
/* Trues with an extent of that origin along each of ndim dims, 0: one of 1; NULL where all are, or after an error. */
trama_value *build_pattern(onnx_node *n, int ndim, const int64_t *origin);
trama_value *build_reshaped(onnx_node *n, trama_value *x, int at, int ndim); /* x [c] to [1, .., c, .., 1] */
trama_shape shape_without(trama_shape shape, unsigned dims);

#define ONNX_BUILD(name) void name(onnx_node *n, trama_value **out)
#define ONNX_FOLD(name) host_tensor *name(onnx_node *n)

#endif
