/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models become programs: networks that PyTorch and others export can be annotated, completed, trained and run
 * like a program that was recorded by hand. trama.h does not include this header.
 *
 *     trama_program *p = trama_program_create();
 *     trama_onnx *model = trama_onnx_load(p, "network.onnx", NULL);
 *     trama_value *x = trama_onnx_find(model, "input"), *y = trama_onnx_find(model, "output");
 *     trama_shard(x, mesh, "S(0),R");
 *     trama_target *infer = trama_target_create(p, "infer", y);
 *
 * Inputs of the graph become inputs of the program. Their dims that have a name or nothing become TRAMA_ANY, unless an
 * option gives the name an extent. Initializers of floats that ops read become parameters with the initializer's
 * content, and other initializers become constants; so do floats without dims, since exporters write the numbers of
 * a program like that (options.train_scalars). A model does not tell its weights from other tables, such as the
 * frequencies of rotary embeddings: a parameter group without an optimizer (trama_optimizer.h) freezes them.
 * Statistics of a batch normalization become states, which trama_minimize does not update. A value has the name that
 * the graph gives it.
 *
 * Ops on constants and on shapes are computed while the model is loaded, such as the target of a reshape that is made
 * of Shape, Gather, Unsqueeze and Concat. Extents that are only known when fed may be merged, divided, repeated and
 * counted by. So may multiples of one, and sums of two or of one and a number, such as the number of earlier tokens and
 * new ones. A dim of an input whose name is a sum, as "earlier + new", has that extent; what is fed must be as long,
 * which is not checked. Extents that are computed otherwise are not supported. A Slice takes the first or the last
 * element of a dim that is fed, or all, or those from one term of its extent on. Of a table that is sliced to a fed
 * extent, elements that are not there read NaN, 0 of integers, and so does the first element of no elements.
 *
 * Operator sets 7 to 21 are supported, and 1 to 6 for the ops whose older forms are listed in
 * dist/onnx/ops/onnx_ops.def. Not supported: strings, sequences, optionals, maps, sparse tensors, control flow,
 * functions of the model.
 *
 * Builders of this header return NULL where they fail, and the program keeps the error like that of any builder. The
 * message names the model, the node and its op. E_UNSUPPORTED: an op, an attribute or an element type that Trama does
 * not have. E_ARGUMENT: a file that is no model, that refers to names that are not there, or that is wrong otherwise.
 * E_SYSTEM: a file that cannot be read. A Trama that was built without protobuf-c has these functions, too, and they
 * fail with E_UNSUPPORTED. No function of this header is collective; all ranks load the same model. */
#ifndef TRAMA_ONNX_H
#define TRAMA_ONNX_H

#include "trama_program.h"

TRAMA_API_BEGIN

typedef struct trama_onnx trama_onnx; /* names of an imported graph; the program owns the values */

/* The extent of all dims of that name in the inputs of a graph. */
typedef struct trama_onnx_dim {
    const char *name; /* as in the graph, "batch" */
    int64_t extent;   /* >= 0 */
} trama_onnx_dim;

/* The content of an input that is known when the model is loaded: the input is then a constant. Ops need some operands
 * known, such as the target of Reshape. */
typedef struct trama_onnx_constant {
    const char *name;  /* of an input of the graph */
    trama_dtype dtype; /* of the input */
    trama_shape shape; /* of data; all extents known */
    const void *data;  /* [shape] row-major; borrowed during the call */
} trama_onnx_constant;

/* Options of an import. NULL and a zeroed struct: the defaults. */
typedef struct trama_onnx_options {
    size_t size;                          /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    const trama_onnx_dim *dims;           /* [n_dims] extents of dims that have names; borrowed during the call */
    int n_dims;                           /* their number */
    const trama_onnx_constant *constants; /* [n_constants] inputs with known content; borrowed during the call */
    int n_constants;                      /* their number */
    bool frozen;                          /* initializers of floats become constants instead of parameters */
    bool train_scalars;                   /* those without dims become parameters, too */
} trama_onnx_options;

/* Copies `bytes` bytes of external data from `offset` on to `to`. location: the name of the data as the model gives it,
 * from a file that may be hostile: check it before you open anything. A status other than TRAMA_OK ends the import; the
 * function leaves its reason in *reason, a text that stays valid. */
typedef trama_status trama_onnx_read(void *data, const char *location, int64_t offset, int64_t bytes, void *to,
                                     const char **reason);

/* A model in memory. */
typedef struct trama_onnx_source {
    size_t size;           /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    const void *model;     /* [bytes] a serialized ModelProto; borrowed during the call */
    size_t bytes;          /* its length */
    const char *name;      /* for messages; NULL: "model" */
    trama_onnx_read *read; /* gives external data; NULL: a model that has some is E_UNSUPPORTED */
    void *data;            /* the first argument of read */
} trama_onnx_source;

/* Appends a model to the program. trama_onnx_load reads a file, and the files of external data in the folder of that
 * file or below it; locations that leave the folder are E_ARGUMENT. trama_onnx_create takes bytes. Returns the names of
 * the graph, to be destroyed by the caller; the program and its values do not need them. */
#define trama_onnx_load(program, file, options) trama_onnx_load_at(TRAMA_HERE, program, file, options)
trama_onnx *trama_onnx_load_at(trama_where where, trama_program *program, const char *file,
                               const trama_onnx_options *options);
#define trama_onnx_create(program, source, options) trama_onnx_create_at(TRAMA_HERE, program, source, options)
trama_onnx *trama_onnx_create_at(trama_where where, trama_program *program, const trama_onnx_source *source,
                                 const trama_onnx_options *options);
void trama_onnx_destroy(trama_onnx **model); /* nulls *model; NULL is allowed */

/* The lists of an imported graph. */
typedef enum trama_onnx_list {
    TRAMA_ONNX_INPUTS,    /* of the graph, without initializers */
    TRAMA_ONNX_OUTPUTS,   /* of the graph */
    TRAMA_ONNX_PARAMETERS /* parameters and states, in the order in which ops read them first */
} trama_onnx_list;

int trama_onnx_count(const trama_onnx *model, trama_onnx_list list); /* length of a list; 0 for NULL */
/* Value i of a list and the name that the graph gives it; NULL where there is none. Outputs may be one value, and may
 * be inputs or constants. Names live as long as the model. */
trama_value *trama_onnx_number(const trama_onnx *model, trama_onnx_list list, int i);
const char *trama_onnx_name(const trama_onnx *model, trama_onnx_list list, int i);

/* The value of that name: an input, an output, a parameter, or a result of a node between them. NULL where the graph
 * has no such name, and for values that were computed while the model was loaded. */
trama_value *trama_onnx_find(const trama_onnx *model, const char *name);

TRAMA_API_END
#endif
