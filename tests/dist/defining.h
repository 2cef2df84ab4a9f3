/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of ops whose kernels never run. */
#ifndef DEFINING_H
#define DEFINING_H

#include <check.h>
#include <string.h>

#include "trama_op_define.h"
#include "trama_ops.h"

static inline trama_status nothing(const trama_call *call)
{
    (void)call;
    return TRAMA_OK;
}

static inline const trama_op *defined(trama_op_definition d)
{
    const trama_op *op = NULL;
    d.cpu = nothing;
    trama_status status = trama_op_define(&d, &op);
    ck_assert_msg(!status && op, "%s", trama_error());
    return op;
}

static inline trama_value *input(trama_program *p, const char *name, trama_shape shape)
{
    return trama_input(p, name, TRAMA_F64, shape);
}

#endif
