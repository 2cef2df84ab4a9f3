/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of trama_onnx.h where protobuf-c was not found: they fail, so that programs link everywhere. */
#include "program.h"
#include "trama_onnx.h"

trama_onnx *trama_onnx_create_at(trama_where where, trama_program *program, const trama_onnx_source *source,
                                 const trama_onnx_options *options)
{
    return program_fail(program, where, program && source ? TRAMA_E_UNSUPPORTED : TRAMA_E_ARGUMENT,
                        program && source ? "trama_onnx_create: this Trama was built without protobuf-c; install "
                                            "libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, and build it again"
                                          : "trama_onnx_create: the program or the source is NULL");
}

void trama_onnx_destroy(trama_onnx **model)
{
}

int trama_onnx_count(const trama_onnx *model, trama_onnx_list list)
{
    return 0;
}

trama_value *trama_onnx_number(const trama_onnx *model, trama_onnx_list list, int i)
{
    return NULL;
}

const char *trama_onnx_name(const trama_onnx *model, trama_onnx_list list, int i)
{
    return NULL;
}

trama_value *trama_onnx_find(const trama_onnx *model, const char *name)
{
    return NULL;
}
