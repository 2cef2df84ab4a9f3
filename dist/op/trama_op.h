/* SPDX-License-Identifier: Apache-2.0 */
/* What an op is: a descriptor. dist reads its rule and gradient, codelets its kernel; nobody switches over kinds. */
#ifndef TRAMA_OP_H
#define TRAMA_OP_H

#include "trama_base.h"

TRAMA_API_BEGIN

enum {
    TRAMA_MAX_OPERANDS = 8,   /* operands of an op, and results of an op */
    TRAMA_MAX_ATTRIBUTES = 16 /* integers and reals each */
};

/* An op's constants. The op's field `attributes` names its slots. Equal attributes are equal bytes. */
typedef struct trama_attributes {
    int64_t integer[TRAMA_MAX_ATTRIBUTES]; /* flags, dims, extents, seeds */
    double real[TRAMA_MAX_ATTRIBUTES];     /* factors, limits */
} trama_attributes;

/* A box of a tensor in memory. Element (i0, i1, ...) of the box lies at data + size * sum(i_d * stride[d]) and is
 * element (offset[0]+i0, ...) of the whole tensor, whose shape is global[]. Any extent may be 0. */
typedef struct trama_view {
    void *data;                     /* of element 0 of the box; borrowed */
    trama_dtype dtype;              /* of the elements */
    int ndim;                       /* of the tensor */
    int64_t extent[TRAMA_MAX_NDIM]; /* [ndim] of the box */
    int64_t stride[TRAMA_MAX_NDIM]; /* in elements */
    int64_t offset[TRAMA_MAX_NDIM]; /* [ndim] of the box in the tensor */
    int64_t global[TRAMA_MAX_NDIM]; /* [ndim] extents of the tensor */
} trama_view;

typedef struct trama_op trama_op; /* see struct trama_op */

/* One computation on boxes: what a kernel gets. The views have their tensors' own ndim; broadcasting is the kernel's. */
typedef struct trama_call {
    const trama_op *op;                 /* what is computed */
    const trama_attributes *attributes; /* its constants */
    int n_in, n_out;       /* operands and results */
    const trama_view *in;  /* [n_in]; a shape-only operand has data NULL */
    const trama_view *out; /* [n_out]; an updated operand and its result have the same data */
} trama_call;

struct trama_rule;
struct trama_node;
struct trama_value;

/* What an op is. A field that is NULL or 0 says what is usual. */
struct trama_op {
    const char *name; /* as in messages */
    int n_in, n_out;  /* operands and results */
    /* "mk,kn->mn": one letter a factor, "..." right-aligned dims that broadcast, "[n]" must be whole, "k=3" has that
     * extent. Factors that no result has are summed. NULL: infer says it. */
    const char *rule;
    /* Per operand which partial values pass, comma separated: "linear", "joint" (linear in all operands together),
     * "rising", "falling", "any", "max", "min", "-" for none; several joined by "+". NULL: none. */
    const char *partial;
    /* Fills the factor table from attributes and shapes where the string alone cannot. */
    trama_status (*infer)(struct trama_rule *rule, const struct trama_node *node);
    /* Element types [n_out] of the results; those that it leaves alone are that of result 0, and an updated operand's
     * result keeps that operand's. NULL: that of operand 0, and all operands must agree. */
    trama_status (*dtype)(const struct trama_node *node, trama_dtype *result);
    /* Appends to the program the gradients of the operands: d_in[i] stays NULL where there is none. */
    void (*gradient)(const struct trama_node *node, struct trama_value *const *d_out, struct trama_value **d_in);
    trama_status (*own)(const trama_call *call); /* kernel of an op of one's own (trama_op_define.h); NULL: built in */
    trama_status (*own_cuda)(const trama_call *call, void *stream); /* the same on a GPU; NULL: it runs on CPUs only */
    /* Names of the integer slots in order, then of the reals, as "trans_x trans_y | ". "perm[8]" names 8 slots; "*f" a
     * slot that holds an address, which is neither printed nor compared over the ranks. */
    const char *attributes;
    double flops;             /* per point of the op's factor space */
    unsigned updates;         /* bit i: result i is written over operand i */
    bool follows;             /* operand 0, a state that it updates, lies like operand 1 */
    unsigned shape_only;      /* bit i: of operand i only shape and layout are used */
    bool pointwise;           /* every result element depends on the operand elements of its own index only */
    bool exact;               /* elements are moved, chosen or converted, so that they have equal bits wherever it is done */
    bool alias;               /* the result is the operand itself, in the layout that it is asked for: nothing is computed */
};

TRAMA_API_END
#endif
