/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of an op. dist reads its rule and gradient, codelets its kernel; no code switches over op kinds. */
#ifndef TRAMA_OP_H
#define TRAMA_OP_H

#include "trama_base.h"

TRAMA_API_BEGIN

enum {
    TRAMA_MAX_OPERANDS = 8,   /* limit of operands, and of results */
    TRAMA_MAX_ATTRIBUTES = 16 /* limit of integers, and of reals */
};

/* The constants of an op. The op's field `attributes` names the slots. Attributes are equal if their bytes are. */
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

typedef struct trama_op trama_op; /* defined below */

/* The argument of a kernel: one computation on boxes. Each view has the ndim of its tensor; the kernel broadcasts. */
typedef struct trama_call {
    const trama_op *op;                 /* the op */
    const trama_attributes *attributes; /* its constants */
    int n_in, n_out;       /* operands and results */
    const trama_view *in;  /* [n_in]; a shape-only operand has data NULL */
    const trama_view *out; /* [n_out]; an updated operand and its result have the same data */
    bool goes_on; /* results hold those of other parts of what the op goes through, and take up this one */
} trama_call;

/* Whether an op adds a factor times operand 1 to operand 0, the state that it updates; and where the factor stands. */
typedef enum trama_addition {
    TRAMA_ADDITION_NONE,      /* it does something else */
    TRAMA_ADDITION_ATTRIBUTE, /* operand 0 - a operand 1, where a is real attribute 0 */
    TRAMA_ADDITION_OPERANDS   /* operand 0, or 0 where the scalar operand 2 is 0, + a operand 1, where a is operand 3 */
} trama_addition;

/* Whether a BLAS can compute an op that reads a product: the epilogue of the product. */
typedef enum trama_epilogue {
    TRAMA_EPILOGUE_NONE, /* it cannot */
    TRAMA_EPILOGUE_ROW   /* the op adds its two operands: one is the product, the other may be a row [n] */
} trama_epilogue;

/* How a scatter joins an element of x and the elements with its index, in the order of the indices. */
typedef enum trama_scatter_how {
    TRAMA_SCATTER_SET,      /* the last of them */
    TRAMA_SCATTER_ADD,      /* their sum */
    TRAMA_SCATTER_MULTIPLY, /* their product */
    TRAMA_SCATTER_MAX,      /* the largest; NaN if one is */
    TRAMA_SCATTER_MIN       /* the smallest; NaN if one is */
} trama_scatter_how;

/* The attributes trans_x and trans_y of matmul: how it reads an operand. */
typedef enum trama_transposition {
    TRAMA_NO_TRANS,  /* as it is */
    TRAMA_TRANS,     /* the transposed matrix */
    TRAMA_CONJ_TRANS /* the conjugate of the transposed matrix; of a real one the transposed */
} trama_transposition;

struct trama_rule;
struct trama_node;
struct trama_value;

/* The descriptor of an op. A field that is NULL or 0 has its default. */
struct trama_op {
    const char *name; /* for messages */
    int n_in, n_out;  /* operands and results */
    /* "mk,kn->mn": each letter is a factor. "..." stands for right-aligned dims that broadcast, "[n]" is never split,
     * "k=3" has that extent. Factors that no result has are summed. NULL: `infer` makes the table. */
    const char *rule;
    /* Which partial values of each operand pass to the result, comma separated: "linear", "joint" (linear in all joint
     * operands at once), "rising", "falling", "any", "max", "min", "-" for none; "+" joins several words. NULL:
     * none. */
    const char *partial;
    /* Fills the factor table from attributes and shapes, for rules that a string cannot express. */
    trama_status (*infer)(struct trama_rule *rule, const struct trama_node *node);
    /* Sets the element types [n_out] of the results. A result that it does not set has the type of result 0, and the
     * result of an updated operand keeps that operand's type. NULL: all operands must have one type, which the results
     * get; f32 without operands. */
    trama_status (*dtype)(const struct trama_node *node, trama_dtype *result);
    /* Appends the gradients of the operands to the program; d_in[i] stays NULL for an operand without a gradient. */
    void (*gradient)(const struct trama_node *node, struct trama_value *const *d_out, struct trama_value **d_in);
    /* Appends ops that compute the results out[n_out] where dim `dim`, which the rule cannot split so, is split into n
     * equal parts, of which a piece by weights has several. These ops exchange sums or extrema of parts, or elements at
     * borders, and replace the op where they receive fewer bytes. Where the attributes or shapes of the node allow no
     * such ops, nothing is appended and out[0] stays NULL. NULL: the op has no split form. */
    void (*split_form)(const struct trama_node *node, int dim, int64_t n, struct trama_value **out);
    /* Sets the strides of y, a box of the result, and *at, the elements from the first of x, a box of the operand, to
     * the first of y, if all of y's elements are elements of x; else false. x has extents, offsets and strides, y extents
     * and offsets. NULL: they are not. */
    bool (*view)(const trama_attributes *attributes, const trama_view *x, trama_view *y, int64_t *at);
    trama_status (*own)(const trama_call *call); /* kernel of a user-defined op (trama_op_define.h); NULL: built in */
    trama_status (*own_cuda)(const trama_call *call, void *stream); /* the same on a GPU; NULL: CPUs only */
    /* Names of the integer slots in order, then of the reals: "trans_x trans_y | ". "perm[8]" names 8 slots. "*f" names
     * a slot with an address, which is neither printed nor compared over the ranks. */
    const char *attributes;
    unsigned kinds;           /* trama_dtype_kind of element types that the operands may have, or'ed; 0: all but complex, of an op of one's own all */
    double flops;             /* per point of the op's factor space */
    unsigned updates;         /* bit i: result i is written over operand i */
    bool follows;             /* operand 0, an updated state, is laid out like operand 1 */
    unsigned shape_only;      /* bit i: the op uses only shape and layout of operand i */
    bool pointwise;           /* a result element depends only on the operand elements of its index */
    bool exact;               /* elements are only moved, chosen or converted: their bits are equal on any mesh */
    bool alias;               /* the result is the operand in the layout asked for; nothing is computed */
    unsigned gpu_kinds;       /* kinds that its kernel for GPUs computes, or'ed, 0 without one; others run on a CPU worker */
    bool product;             /* its kernels can add the result to a state, and compute epilogues on a GPU */
    trama_addition addition;  /* how it adds to the state that it updates */
    trama_epilogue epilogue;  /* the epilogue as which a product's kernel can compute it */
};

TRAMA_API_END
#endif
