/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined ops: a rule, a kernel and a gradient. Completion, tiles, fusion, gradients, eager mode and traces treat
 * them like built-in ops. examples/own_op.c is a whole program; trama_op_validate.h tries a rule.
 *
 * The language of rules: one part for each tensor, commas between, operands "->" results.
 *   "mk,kn->mn"      a letter is a dim. Dims of one letter have one extent and are split together.
 *   "bn->b"          dims that no result has are summed, or combined by `reduce`: each process makes one term.
 *   "b[n]->b[n]"     dims in brackets are never split: the kernel sees all of them.
 *   "...,...->..."   "..." comes first: any number of dims, aligned on the right; extents of 1 are repeated.
 *   "...n,n->...n"   leading dims and a last dim.
 *   "b,->b"          an empty part is a scalar.
 *   "i{1:2}j->ij"    the kernel also gets 1 neighbour before and 2 after its part of the dim, fewer at the ends of the
 *                    tensor. Offset and extent of a view give its part (trama_element_at). "i{1:1~}" wraps around:
 *                    beyond the ends, at the indices -1 and n, are the elements of the other end. Every result has the
 *                    dim.
 *   "i{1:1*2}->i"    a stride: index i of the result reads index 2 i of the operand and its neighbours. 7 elements give
 *                    4 results, unless the rule has another extent, as in "i=3{0:2*2}->i".
 *   "b->b[k=3]"      an extent: required for a new dim of a result, checked on operands.
 * Without a rule every process computes on whole operands, and results have the shape of operand 0. */
#ifndef TRAMA_OP_DEFINE_H
#define TRAMA_OP_DEFINE_H

#include "trama_layout.h"
#include "trama_op.h"
#include "trama_program.h"

TRAMA_API_BEGIN

/* One application of an op, for the functions of its definition. */
typedef struct trama_op_use {
    const trama_op *op;                     /* the op */
    trama_where where;                      /* of trama_apply */
    const trama_attributes *attributes;     /* as given there, or zeros */
    int n_in;                               /* operands */
    trama_shape shape[TRAMA_MAX_OPERANDS];  /* of each; TRAMA_ANY where known only when fed */
    trama_dtype dtype[TRAMA_MAX_OPERANDS];  /* of each */
} trama_op_use;

/* Sets the error message of a function of a definition; it gets the place of the use and the op's name. Returns status,
 * for the function to return. */
trama_status trama_op_refuse(const trama_op_use *use, trama_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the error message of a kernel, at most 399 characters. Returns E_KERNEL, for the kernel to return. */
trama_status trama_kernel_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The argument of a gradient function. */
typedef struct trama_op_gradient trama_op_gradient;

/* The definition of an op, which trama_op_define copies. A zeroed field has its default; name, n_in, n_out and cpu have
 * no default. The functions must do the same on all ranks and in every call. */
typedef struct trama_op_definition {
    size_t size;      /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    const char *name; /* a C identifier of at most 40 characters that no built-in op has; tasks have this name */
    int n_in, n_out;  /* each 1 to 8, their sum at most 10 */
    const char *rule; /* in the language above; NULL: from rule_of, or no rule */
    /* Writes a rule that depends on attributes, shapes or element types into rule [room bytes, with the final 0]. */
    trama_status (*rule_of)(const trama_op_use *use, char *rule, size_t room);
    /* Which partial values of an operand pass to the result instead of being reduced before, one part for each operand,
     * words joined by "+": "linear" f(a+b) = f(a)+f(b); "joint" the same in all joint operands at once; "rising",
     * "falling": monotone, so that max and min of terms pass; "any"; "max"; "min"; "-" none. NULL: none. With several
     * results nothing passes. */
    const char *partial;
    trama_reduce reduce; /* of dims that no result has; TRAMA_SUM */
    /* Sets the element types of the results, result [n_out], or refuses. A result that it does not set has the type of
     * result 0; an updated operand keeps its own. NULL: all operands must have one type, which the results get. */
    trama_status (*dtype)(const trama_op_use *use, trama_dtype *result);
    /* Computes one call. in[] and out[] are boxes at any strides that fit each other by the rule; out[] is not
     * initialized, except for updated operands. It runs on many threads at once and must not call Trama, except
     * trama_kernel_fail. Any status but TRAMA_OK is a failure: see trama_executable.h. */
    trama_status (*cpu)(const trama_call *call);
    /* The same on a GPU: data are device pointers, stream is a cudaStream_t. It enqueues the work and does not wait for
     * it. NULL: for places on GPUs a CPU worker of the rank computes the call, and the data are copied there and
     * back. */
    trama_status (*cuda)(const trama_call *call, void *stream);
    /* Appends the gradients of the operands, as ops. NULL: a gradient through the op is an error. */
    void (*gradient)(const trama_op_gradient *gradient);
    /* Names of the integer slots in order, "|", names of the reals: "axis | low high". All ranks must give equal
     * attributes, which trama_compile compares. A name with a star, "*table", marks an integer that holds an address
     * and is not compared. */
    const char *attributes;
    double flops;           /* per point of the dims that the rule names, for the choice of tiles; 0 counts as 1 */
    unsigned updates;       /* bit i: result i is written over operand i, which is state of its shape */
    /* Whether an element of a result depends only on the operand elements of its index, and not on the index. A kernel
     * may then get any piece as a 1-d call, and chains become one task. The rule must consist of "..." and scalars
     * only. */
    bool pointwise;
} trama_op_definition;

/* Checks the whole definition. The caller owns *op and destroys it after all programs and executables that use it. The
 * message of E_ARGUMENT names the caller's file and line, the mistake and a remedy. */
#define trama_op_define(...) trama_op_define_at(TRAMA_HERE, __VA_ARGS__) /* definition, op */
trama_status trama_op_define_at(trama_where where, const trama_op_definition *definition, const trama_op **op);
/* Destroys *op and nulls it. NULL and built-in ops are left alone. */
void trama_op_destroy(const trama_op **op);

/* trama_apply(op, n, operands, attributes), a builder like those of trama_ops.h: operands [n]; attributes NULL: zeros.
 * Returns result 0; trama_result(value, i) returns the others. */
#define trama_apply(...) trama_apply_at(TRAMA_HERE, NULL, __VA_ARGS__)

/* ---- For kernels ----------------------------------------------------------------------------------- */

/* Visits all indices of a view, row-major: int64_t i[TRAMA_MAX_NDIM]; for (bool more = trama_first(out, i); more; more
 * = trama_next(out, i)). */
static inline bool trama_first(const trama_view *of, int64_t *index)
{
    bool any = true;
    for (int d = 0; d < of->ndim; d++) {
        index[d] = 0;
        any = any && of->extent[d] > 0;
    }
    return any;
}
static inline bool trama_next(const trama_view *of, int64_t *index)
{
    for (int d = of->ndim - 1; d >= 0; d--) {
        if (++index[d] < of->extent[d])
            return true;
        index[d] = 0;
    }
    return false;
}
/* The element of the view `of` at an index [ndim] of a result: dims aligned on the right, extents of 1 repeated. */
static inline void *trama_element(const trama_view *of, int ndim, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < of->ndim; d++)
        at += of->extent[d] == 1 ? 0 : index[d + ndim - of->ndim] * of->stride[d];
    return (char *)of->data + at * (int64_t)trama_dtype_size(of->dtype);
}

/* The element of a view at an index [ndim] of the whole tensor, which must be inside the view. */
static inline void *trama_element_at(const trama_view *of, const int64_t *place)
{
    int64_t at = 0;
    for (int d = 0; d < of->ndim; d++)
        at += (place[d] - of->offset[d]) * of->stride[d];
    return (char *)of->data + at * (int64_t)trama_dtype_size(of->dtype);
}

/* ---- For gradients ------------------------------------------------------------------------------- */

/* The op whose operands get gradients, with its values and constants. */
struct trama_op_gradient {
    trama_where where;                   /* of trama_apply, for builders that end in _at */
    const trama_op *op;                  /* the op */
    const trama_attributes *attributes;  /* of this application */
    const struct trama_node *node;       /* internal */
    struct trama_value *const *of_result; /* internal: use trama_op_result_gradient */
    struct trama_value **of_operand;      /* internal: use trama_op_set_gradient */
};

trama_value *trama_op_operand(const trama_op_gradient *gradient, int i); /* operand i; NULL outside, as below */
trama_value *trama_op_result(const trama_op_gradient *gradient, int i);  /* result i */
/* The gradient of result i; zeros if the loss does not depend on it. NULL for results of integers, and outside. */
trama_value *trama_op_result_gradient(const trama_op_gradient *gradient, int i);
/* Whether the gradient of operand i is needed; if not, trama_op_set_gradient ignores it. */
bool trama_op_wants(const trama_op_gradient *gradient, int i);
/* Sets the gradient of operand i, in the operand's shape. Where "..." repeated the operand, value may have the repeated
 * shape and is then summed. An operand without a gradient counts as one that the results do not depend on. A shape or
 * type that does not fit is E_SHAPE on the program. */
void trama_op_set_gradient(const trama_op_gradient *gradient, int i, trama_value *value);

TRAMA_API_END
#endif
