/* SPDX-License-Identifier: Apache-2.0 */
/* A layout: how a tensor lies on a mesh, one placement per mesh axis. */
#ifndef TRAMA_LAYOUT_H
#define TRAMA_LAYOUT_H

#include "trama_mesh.h"

TRAMA_API_BEGIN

/* How the terms of a partial value combine to the value. */
typedef enum trama_reduce {
    TRAMA_SUM, /* the terms added */
    TRAMA_AVG, /* their sum by their number */
    TRAMA_MAX, /* the largest */
    TRAMA_MIN  /* the smallest */
} trama_reduce;

/* What one mesh axis does to a tensor. */
typedef enum trama_placement_kind {
    TRAMA_OPEN,      /* ?    to be completed */
    TRAMA_REPLICATE, /* R    every process along the axis holds all */
    TRAMA_SPLIT,     /* S(d) dim d is cut along the axis, balanced: of n over p the first n mod p pieces are one longer */
    TRAMA_PARTIAL    /* P(k) every process holds one term; the value is their combination */
} trama_placement_kind;

/* A kind with what it needs to know. */
typedef struct trama_placement {
    trama_placement_kind kind; /* which of the following count */
    int dim;             /* SPLIT */
    int order;           /* SPLIT: 0 for the axis that cuts the dim first, 1 for the next, ... */
    trama_reduce reduce; /* PARTIAL */
} trama_placement;

/* A value: copy it freely. It is used together with a mesh of ndim axes. */
typedef struct trama_layout {
    int naxes;                            /* the mesh's ndim */
    trama_placement axis[TRAMA_MAX_AXES]; /* [naxes] */
    const unsigned char *mask; /* [processes] 1 where a process holds the tensor; NULL: all. Owned by the mesh */
} trama_layout;

/* Parses a text for a tensor of tensor_ndim dims. An entry stands either per mesh axis or per dim of the tensor:
 *
 *   layout    = (axes | dims [ "P{" axis ":" kind { "," axis ":" kind } "}" ]) [ "mask{" bit { "," bit } "}" ]
 *   axes      = placement { "," placement }
 *   placement = "R" | "S(" dim ")" [ "[" order "]" ] | "P" [ "(" kind ")" ] | "?"
 *   dims      = "[" [ cut { "," cut } ] "]" | cut { "," cut }
 *   cut       = "-" | "-1" | axis { "+" axis }
 *   axis      = the name of a mesh axis | its number, from 0
 *   kind      = "sum" | "avg" | "max" | "min"
 *
 * On the mesh dp=2,mp=2 and for a matrix these are one layout each:
 *
 *   "S(0),R"               "dp,-"     "[dp, -]"     "[0,-1]"      dim 0 split along dp
 *   "S(0),S(0)"            "dp+mp,-"  "[dp+mp, -]"  "[0+1,-1]"    dim 0 split along dp, each piece along mp
 *   "S(0)[1],S(0)[0]"      "mp+dp,-"  "[mp+dp, -]"  "[1+0,-1]"    the other way round
 *   "R,P(sum)", "R,P"      "-,- P{mp:sum}"          "[-1,-1] P{1:sum}"
 *   "R,R mask{1,0,1,1}"    "-,- mask{1,0,1,1}"                    process 1 does not hold it
 *
 * Orders [k] are for axes that cut one dim in another order than the mesh's: all of these axes have one, or none. "?" leaves
 * an axis open. Blanks may stand between the words. A mesh axis named R, S or P is an axis inside of brackets only. E_LAYOUT
 * names the letter of the text, what is wrong there and what would fix it; *layout is not changed then. */
trama_status trama_layout_parse(const trama_mesh *mesh, int tensor_ndim, const char *text, trama_layout *layout);

/* The per-axis form, and the dims mapping with numbers of axes; both parse back to an equal layout (in the mapping, open
 * axes print as unsplit). NULL for NULL and for what is no layout on the mesh. trama_text_free frees it. */
char *trama_layout_text(const trama_mesh *mesh, const trama_layout *layout);
char *trama_layout_mapping(const trama_mesh *mesh, int tensor_ndim, const trama_layout *layout);

/* mapping [tensor_ndim]: the mesh axis that cuts each dim, or -1. */
trama_status trama_layout_from_mapping(const trama_mesh *mesh, int tensor_ndim, const int *mapping,
                                       trama_layout *layout);

/* The layout with a presence mask [processes of the mesh], 0 or 1: which processes hold the tensor at all. Each box
 * (of a partial value: each term of it) must keep a holder. NULL takes the mask away. */
trama_status trama_layout_mask(const trama_mesh *mesh, int tensor_ndim, const unsigned char *mask,
                               trama_layout *layout);

/* The box of the tensor that the process at a row-major position of the mesh holds: offset and extent [shape.ndim], one of which
 * is 0 where the box is empty. term: its coordinate along the partial axes, row-major, 0 without; NULL: not asked. *held is
 * false where the mask takes it away. E_LAYOUT for a layout that is open or does not fit, E_ARGUMENT for a position outside. */
trama_status trama_layout_box(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int position,
                              int64_t *offset, int64_t *extent, int *term, bool *held);

/* Who holds what, a line for each process. trama_text_free frees it. Errors as above; *text is set on TRAMA_OK only. */
trama_status trama_layout_describe(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text);

/* The lines of n processes, from the one at a row-major position on. E_ARGUMENT where the mesh does not have them. */
trama_status trama_layout_describe_some(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int first,
                                        int n, char **text);

/* Counts the holders of a tensor, in about ten lines for a mesh of any size: how many different boxes there are, their
 * holders and extents, the elements of all processes together and the most of one. Every process is counted. The caller
 * frees. Errors as above. */
trama_status trama_layout_summary(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text);

/* The same placements and the same mask. */
bool trama_layout_equal(const trama_layout *a, const trama_layout *b);

TRAMA_API_END
#endif
