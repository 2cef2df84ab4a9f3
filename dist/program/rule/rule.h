/* SPDX-License-Identifier: Apache-2.0 */
/* The factor table of one op on given shapes: the factors of each dim, and the effect of splits and partial values.
 * Layouts and tiles follow from it alone. */
#ifndef RULE_H
#define RULE_H

#include "box.h"
#include "trama_layout.h"
#include "trama_op.h"

enum { RULE_MAX_FACTORS = 3 * TRAMA_MAX_NDIM, RULE_MAX_TENSORS = 10, RULE_MAX_ADDENDS = 2 };

typedef struct rule_factor {
    int64_t extent;      /* TRAMA_ANY until fed */
    bool whole;          /* must not be split */
    bool cut_last;       /* its parts take unequal work: tiles are cut along it where no other dim serves */
    bool no_work;        /* the result has the operand's elements by other factors: work does not count this one */
    signed char addend;  /* of work, which is the product of the extents: one factor is a sum of products, and this
                            extent is of the product with that number, from 1; 0: of none */
    bool in_turn;        /* calls may take its parts one after the other: each goes on from the results that lack it */
    trama_reduce reduce; /* how terms combine where no result has the factor */
} rule_factor;

/* A dim is the product of its factors, major first; without factors its extent is 1. */
typedef struct rule_dim {
    signed char n, factor[TRAMA_MAX_NDIM];
} rule_dim;

/* The neighbours that are read of an operand's dim with one factor: range [lo, hi) of the factor needs the indices from
 * (stride lo - before) / per, rounded up, to (stride (hi - 1) + after) / per, rounded down, cut at the ends of the dim
 * unless it wraps. */
typedef struct rule_reach {
    int64_t before, after;
    int64_t stride;  /* 0: 1 */
    int64_t per;     /* 0: 1 */
    bool wraps;      /* indices beyond an end are those of the other end */
    bool own_extent; /* the dim's extent is not the factor's; a factor that is only known when fed gets per / stride
                      * of it, rounded up, unless the dim joins */
    bool divides;    /* and the extents must be such that nothing is rounded */
    /* The dims of the operands with the factor lie behind each other, and their extents add up to the factor's.
     * rule_join sets the factor's extent, the neighbours, and: */
    bool joins;
    int64_t own; /* the dim's extent */
    /* Rows of another length, bit masks of factors: row i of the factor has the elements of those of `of_row`, and row
     * j of the dim those of `of_dim`. rule_settle sets the members above; 0: none. */
    unsigned of_row, of_dim;
} rule_reach;

static inline bool reach_is_none(const rule_reach *r)
{
    return !r->before && !r->after && !r->own_extent;
}

/* Whether its rows have another length than those of the result. */
static inline bool reach_is_rows(const rule_reach *r)
{
    return r->of_row || r->of_dim;
}

/* A dim that wraps around is read at most one extent beyond its ends. */
static inline bool reach_fits(const rule_reach *r, int64_t n)
{
    return !r->wraps || n == TRAMA_ANY || (r->before <= n && r->after <= n);
}

static inline int64_t reach_stride(const rule_reach *r)
{
    return r->stride ? r->stride : 1;
}

static inline int64_t reach_per(const rule_reach *r)
{
    return r->per ? r->per : 1;
}

/* x / by, rounded up; x may be negative. */
static inline int64_t divide_up(int64_t x, int64_t by)
{
    return x > 0 ? (x + by - 1) / by : x / by;
}

/* The partial values of an operand that pass to the result: bit k for kind k if the other operands are whole, and
 * flags: */
enum {
    PASS_JOINT = 1 << 8,
    PASS_FALLING = 1 << 9,
    PASS_LINEAR = 1 << TRAMA_SUM | 1 << TRAMA_AVG,
    PASS_MONOTONE = 1 << TRAMA_MAX | 1 << TRAMA_MIN,
    PASS_ANY = PASS_LINEAR | PASS_MONOTONE
};

typedef struct rule_tensor {
    int ndim;
    rule_dim dim[TRAMA_MAX_NDIM];
    rule_reach reach[TRAMA_MAX_NDIM]; /* operands */
    unsigned pass;                    /* operands */
} rule_tensor;

typedef struct trama_rule {
    int n_factors, n_in, n_out;
    rule_factor factor[RULE_MAX_FACTORS];
    rule_tensor tensor[RULE_MAX_TENSORS]; /* operands, then results */
} trama_rule;

/* The rule of a node from its descriptor, attributes and operand shapes. Errors name op and shapes. */
trama_status rule_build(trama_rule *rule, const struct trama_node *node, const trama_dtype *dtype);

/* For infer functions: reads a rule string against the operand shapes of the node. */
trama_status rule_parse(trama_rule *rule, const char *string, const struct trama_node *node);
int rule_add_factor(trama_rule *rule, int64_t extent);
void rule_add_dim(rule_tensor *tensor, int factor); /* factor -1: a dim of extent 1 */

/* Whether neighbours of operand t are read; of any operand. */
bool rule_reaches(const trama_rule *rule, int t);
bool rule_reaches_any(const trama_rule *rule);

/* The box of operand t that a process needs, whose layouts give it the boxes of operands and results. */
box rule_operand_box(const trama_rule *rule, int t, const box *boxes, const box *whole);

/* The box of operand t with neighbours, for a box inner without them. whole: the whole operand. */
box rule_reached(const trama_rule *rule, int t, const box *inner, const box *whole);

/* Points of the factor space with such extents [n_factors], as work counts them. */
double rule_points(const trama_rule *rule, const double *extent);

/* Sets the reaches of rows from extents that are known by now. Whoever sets extents of factors calls it. */
void rule_settle(trama_rule *rule);

/* Sets what joined dims have by the shapes of the operands, of which some extents may be TRAMA_ANY. It comes before
 * rule_settle. */
void rule_join(trama_rule *rule, const trama_shape *operands);

/* The product of the factors of a set, and of a dim; TRAMA_ANY where one is only known when fed. */
int64_t rule_extent_of(const trama_rule *rule, unsigned factors);
int64_t rule_dim_extent(const trama_rule *rule, const rule_dim *dim);

/* The extent of dim d of tensor t, of which `extent` is known, or TRAMA_ANY: then as the factors have it. */
int64_t rule_extent(const trama_rule *rule, int t, int d, int64_t extent);

/* The shape of result i. */
trama_shape rule_shape(const trama_rule *rule, int i);

/* Sets the factor extents from the concrete shapes known[] of all operands. Dims that share a factor must agree. */
trama_status rule_resolve(trama_rule *rule, const struct trama_node *node, const trama_shape *known);

/* Bit mask of the factors of tensor t. */
unsigned rule_factors(const trama_rule *rule, int t);

/* Whether a factor may be split; equal_only: only into equal pieces, since it is the major factor of a dim with
 * others. */
bool rule_splittable(const trama_rule *rule, int factor, bool *equal_only);

/* Whether a dim of tensor t has a factor that must not be split. */
bool rule_dim_is_whole(const trama_rule *rule, int t, int dim);

/* The dim of tensor t whose leading factor this is; -1 without one. */
int rule_dim_of(const trama_rule *rule, int t, int factor);

#endif
