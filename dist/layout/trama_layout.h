/* SPDX-License-Identifier: Apache-2.0 */
/* A layout distributes a tensor over a mesh by one placement per mesh axis. */
#ifndef TRAMA_LAYOUT_H
#define TRAMA_LAYOUT_H

#include "trama_mesh.h"

TRAMA_API_BEGIN

/* The operation that combines the terms of a partial value. */
typedef enum trama_reduce {
    TRAMA_SUM, /* the sum of the terms */
    TRAMA_AVG, /* their sum divided by their number */
    TRAMA_MAX, /* the largest */
    TRAMA_MIN  /* the smallest */
} trama_reduce;

/* The effect of one mesh axis on a tensor. */
typedef enum trama_placement_kind {
    TRAMA_OPEN,      /* ?    to be completed */
    TRAMA_REPLICATE, /* R    all processes along the axis hold the same elements */
    TRAMA_SPLIT,     /* S(d) dim d is cut evenly along the axis: of n over p the first n mod p pieces are one longer */
    TRAMA_PARTIAL    /* P(k) every process holds one term; the value is their combination */
} trama_placement_kind;

/* A placement: a kind and its parameters. */
typedef struct trama_placement {
    trama_placement_kind kind; /* decides which fields below apply */
    int dim;             /* SPLIT */
    int order;           /* SPLIT: 0 for the axis that cuts the dim first, 1 for the next, ... */
    trama_reduce reduce; /* PARTIAL */
} trama_placement;

/* A layout: one placement per mesh axis. A plain value that may be copied, for meshes of naxes axes. */
typedef struct trama_layout {
    int naxes;                            /* the mesh's ndim */
    trama_placement axis[TRAMA_MAX_AXES]; /* [naxes] */
    const unsigned char *mask; /* [processes] 1: the process holds the tensor; NULL: all do. Owned by the mesh */
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
 * For a matrix on the mesh dp=2,mp=2 the texts of each line give one layout:
 *
 *   "S(0),R"               "dp,-"     "[dp, -]"     "[0,-1]"      dim 0 split along dp
 *   "S(0),S(0)"            "dp+mp,-"  "[dp+mp, -]"  "[0+1,-1]"    dim 0 split along dp, each piece along mp
 *   "S(0)[1],S(0)[0]"      "mp+dp,-"  "[mp+dp, -]"  "[1+0,-1]"    the other way round
 *   "R,P(sum)", "R,P"      "-,- P{mp:sum}"          "[-1,-1] P{1:sum}"
 *   "R,R mask{1,0,1,1}"    "-,- mask{1,0,1,1}"                    process 1 does not hold it
 *
 * An order [k] lets axes cut one dim in another order than the mesh's; either all axes of the dim have one, or none.
 * "?" leaves an axis open. Blanks are allowed between the words. R, S and P are names of mesh axes only inside
 * brackets. The message of E_LAYOUT names the letter of the text, the mistake and a remedy; *layout is then
 * unchanged. */
trama_status trama_layout_parse(const trama_mesh *mesh, int tensor_ndim, const char *text, trama_layout *layout);

/* The layout as text, per axis, or as a dims mapping with numbers of axes. Both parse back to an equal layout, but in
 * the mapping open axes print as unsplit. NULL for NULL and for a layout that is invalid on the mesh. trama_text_free
 * frees it. */
char *trama_layout_text(const trama_mesh *mesh, const trama_layout *layout);
char *trama_layout_mapping(const trama_mesh *mesh, int tensor_ndim, const trama_layout *layout);

/* Makes a layout from a mapping [tensor_ndim]: for each dim the mesh axis that cuts it, or -1. */
trama_status trama_layout_from_mapping(const trama_mesh *mesh, int tensor_ndim, const int *mapping,
                                       trama_layout *layout);

/* Sets the presence mask [processes of the mesh] of a layout: 1 where a process holds the tensor, else 0. Each box, and
 * of a partial value each term of a box, must keep a holder. NULL removes the mask. */
trama_status trama_layout_mask(const trama_mesh *mesh, int tensor_ndim, const unsigned char *mask,
                               trama_layout *layout);

/* The box that the process at a row-major position of the mesh holds: offset and extent [shape.ndim]; an empty box has
 * an extent of 0. *term gets the process's row-major coordinate along the partial axes, 0 without partial axes; *held
 * is false where the mask removes the process. term and held may be NULL. E_LAYOUT for a layout that is open or does
 * not fit, E_ARGUMENT for a position outside of the mesh. */
trama_status trama_layout_box(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int position,
                              int64_t *offset, int64_t *extent, int *term, bool *held);

/* Describes the box of each process, one line a process. trama_text_free frees it. Errors as trama_layout_box; *text is
 * set on TRAMA_OK only. */
trama_status trama_layout_describe(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text);

/* Describes n processes, from row-major position `first` on. E_ARGUMENT where the mesh does not have them. */
trama_status trama_layout_describe_some(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int first,
                                        int n, char **text);

/* Summarises the holders of a tensor in about ten lines for a mesh of any size: the number of different boxes, their
 * holders and extents, the sum of elements over all processes and the maximum of one process. trama_text_free frees it.
 * Errors as trama_layout_box. */
trama_status trama_layout_summary(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text);

/* Whether the placements and the masks are equal. */
bool trama_layout_equal(const trama_layout *a, const trama_layout *b);

TRAMA_API_END
#endif
