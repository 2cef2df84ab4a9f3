/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one's own: a rule, a kernel and a gradient, which completion, tiles, fusion, gradients, eager mode and traces
 * treat as those that are built in. examples/own_op.c is a whole program; trama_op_validate.h tries a rule.
 *
 * The language of rules, one part a tensor, operands "->" results, commas between:
 *   "mk,kn->mn"      a letter is a dim. Dims of one letter have one extent and are split together.
 *   "bn->b"          dims that no result has are combined: each process makes a term of a sum (`reduce` says another).
 *   "b[n]->b[n]"     dims in brackets are never split: the kernel sees all of them.
 *   "...,...->..."   "...", which stands first, is any number of dims, aligned on the right; extents of 1 are repeated.
 *   "...n,n->...n"   both.
 *   "b,->b"          an empty part is a scalar.
 *   "i{1:2}j->ij"    the kernel also gets so many neighbours before and after its part of the dim, fewer at the ends of
*                    the tensor: views say by offset and extent what they have (trama_element_at). "i{1:1~}": beyond the
*                    ends are those of the other end, at the indices -1 and n. The dim is in every result.
 *   "i{1:1*2}->i"    with a stride: index i of the result stands at index 2 i of the operand and its neighbours. Of 7
 *                    elements there are 4 such, unless the rule says their number, as in "i=3{0:2*2}->i".
*   "b->b[k=3]"      an extent: a new dim of a result needs one; on operands it is checked.
 * No rule at all: every process computes on whole operands, and results have the shape of operand 0. */
#ifndef TRAMA_OP_DEFINE_H
#define TRAMA_OP_DEFINE_H

#include "trama_layout.h"
#include "trama_op.h"
#include "trama_program.h"

TRAMA_API_BEGIN

/* What an op is applied to. */
typedef struct trama_op_use {
    const trama_op *op;                     /* the op */
    trama_where where;                      /* of trama_apply */
    const trama_attributes *attributes;     /* as given there, or zeros */
    int n_in;                               /* operands */
    trama_shape shape[TRAMA_MAX_OPERANDS];  /* of each; TRAMA_ANY where only known when fed */
    trama_dtype dtype[TRAMA_MAX_OPERANDS];  /* of each */
} trama_op_use;

/* For the functions of a definition to say what does not suit them: the message gets the place of the use and the op's
 * name. Returns status, for them to return. */
trama_status trama_op_refuse(const trama_op_use *use, trama_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For kernels: what went wrong, at most 399 characters. Returns E_KERNEL, for the kernel to return. */
trama_status trama_kernel_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An op on the way back: what its gradient function is given. */
typedef struct trama_op_gradient trama_op_gradient;

/* Copied by trama_op_define. A zeroed field takes its default; name, n_in, n_out and cpu have none. The functions must
 * do the same on all ranks and whenever they are called. */
typedef struct trama_op_definition {
    size_t size;      /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    const char *name; /* a C identifier of at most 40 characters that no built-in op has; tasks are called after it */
    int n_in, n_out;  /* at least 1, together at most 10, and each at most 8 */
    const char *rule; /* in the language above; NULL: rule_of writes it, or there is none */
    /* Writes the rule, where it depends on attributes, shapes or element types; room: bytes, with the final 0. */
    trama_status (*rule_of)(const trama_op_use *use, char *rule, size_t room);
    /* Which partial values of an operand may pass to the result instead of being combined before, one part an operand,
     * several words joined by "+": "linear" f(a+b) = f(a)+f(b); "joint" the same in all joint operands together;
     * "rising", "falling" monotone, so that the max and min of terms pass; "any"; "max"; "min"; "-" none. NULL: none.
     * Nothing passes an op of several results. */
    const char *partial;
    trama_reduce reduce; /* of dims that no result has; TRAMA_SUM */
    /* Sets the element types of the results, result [n_out], or refuses. A result that it leaves alone has the type of
     * result 0; an updated operand keeps its own. NULL: that of the operands, which must all be of one type. */
    trama_status (*dtype)(const trama_op_use *use, trama_dtype *result);
    /* Computes one call: in[] and out[] are boxes at any strides that belong together as the rule says; out[] is not
     * set, but for updated operands. It runs on many threads at once and must not call Trama, but for trama_kernel_fail.
     * Anything but TRAMA_OK is a failure: see trama_executable.h. */
    trama_status (*cpu)(const trama_call *call);
    /* The same on a GPU: data are device pointers, stream is a cudaStream_t, the work is enqueued and not waited for.
     * NULL: on places that are GPUs a CPU worker of the rank computes it, and its data travel. */
    trama_status (*cuda)(const trama_call *call, void *stream);
    /* Gives the operands their gradients, as ops. NULL: a gradient that would have to go through the op is an error. */
    void (*gradient)(const trama_op_gradient *gradient);
    /* Names of the integer slots in order, "|", names of the reals: "axis | low high". All ranks give the same attributes,
     * which trama_compile compares, but for integers that hold an address: their names begin with a star, "*table". */
    const char *attributes;
    double flops;           /* per point of the dims that the rule names, to decide on tiles; 1 */
    unsigned updates;       /* bit i: result i is written over operand i, which is state of its shape */
    /* Every element of the results depends only on those elements of the operands that are at its place, and not on
     * where that is, so that a kernel may be handed any piece as a 1-d call, and chains become one task. The rule is
     * then made of "..." and scalars only. */
    bool pointwise;
} trama_op_definition;

/* Checks all of the definition. *op is the caller's, who destroys it after all programs and executables with it.
 * E_ARGUMENT names the caller's file and line and what would be right. */
#define trama_op_define(...) trama_op_define_at(TRAMA_HERE, __VA_ARGS__) /* definition, op */
trama_status trama_op_define_at(trama_where where, const trama_op_definition *definition, const trama_op **op);
/* Nulls *op. NULL and built-in ops are left alone. */
void trama_op_destroy(const trama_op **op);

/* trama_apply(op, n, operands, attributes), a builder as those of trama_ops.h: operands [n]; attributes NULL: zeros.
 * Returns result 0; the others by trama_result(value, i). */
#define trama_apply(...) trama_apply_at(TRAMA_HERE, NULL, __VA_ARGS__)

/* ---- For kernels ----------------------------------------------------------------------------------- */

/* Walks over all places of a view, row-major: int64_t i[TRAMA_MAX_NDIM]; for (bool more = trama_first(out, i); more;
 * more = trama_next(out, i)). */
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
/* The element of `view` that belongs to place index [ndim] of a result: aligned on the right, extents of 1 repeated. */
static inline void *trama_element(const trama_view *of, int ndim, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < of->ndim; d++)
        at += of->extent[d] == 1 ? 0 : index[d + ndim - of->ndim] * of->stride[d];
    return (char *)of->data + at * (int64_t)trama_dtype_size(of->dtype);
}

/* The element of a view at a place [ndim] of the whole tensor, which the view has. */
static inline void *trama_element_at(const trama_view *of, const int64_t *place)
{
    int64_t at = 0;
    for (int d = 0; d < of->ndim; d++)
        at += (place[d] - of->offset[d]) * of->stride[d];
    return (char *)of->data + at * (int64_t)trama_dtype_size(of->dtype);
}

/* ---- What a gradient has -------------------------------------------------------------------------- */

/* An op on the way back. */
struct trama_op_gradient {
    trama_where where;                   /* of trama_apply, for builders that end in _at */
    const trama_op *op;                  /* the op */
    const trama_attributes *attributes;  /* with which it was applied */
    const struct trama_node *node;       /* not for you */
    struct trama_value *const *of_result; /* not for you: trama_op_result_gradient */
    struct trama_value **of_operand;      /* not for you: trama_op_set_gradient */
};

trama_value *trama_op_operand(const trama_op_gradient *gradient, int i); /* operand i; NULL outside, as below */
trama_value *trama_op_result(const trama_op_gradient *gradient, int i);  /* result i */
/* Of a result that the loss does not depend on: zeros. NULL for results of integers. */
trama_value *trama_op_result_gradient(const trama_op_gradient *gradient, int i);
/* Whether somebody asks for the gradient of operand i; else it need not be set. */
bool trama_op_wants(const trama_op_gradient *gradient, int i);
/* The gradient of operand i, of its shape; where it was repeated by "...", value may have the repetitions, which are
 * then added up. An operand that gets none counts as one that the results do not depend on. E_SHAPE on the program. */
void trama_op_set_gradient(const trama_op_gradient *gradient, int i, trama_value *value);

TRAMA_API_END
#endif
