/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers: their parts, and how they are made of parts. */
#include "families.h"
#include "trama_complex.h"

bool is_complex(const trama_value *x)
{
    return trama_dtype_kind_of(x->dtype) == TRAMA_KIND_COMPLEX;
}

bool is_real(trama_where where, const char *name, const trama_value *x)
{
    if (!x || !is_complex(x))
        return true;
    program_fail(x->program, where, TRAMA_E_DTYPE,
                 "%s takes no complex numbers; %s is %s: take trama_real, trama_imag or trama_abs of it", name, x->name,
                 trama_dtype_name(x->dtype));
    return false;
}

/* ---- Builders ---- */

trama_value *trama_conj_at(trama_where where, trama_value *z)
{
    return z && !is_complex(z) ? z : apply1(where, &trama_op_conj, z);
}

trama_value *trama_real_at(trama_where where, trama_value *z)
{
    return z && !is_complex(z) ? z : apply1(where, &trama_op_real, z);
}

trama_value *trama_imag_at(trama_where where, trama_value *z)
{
    return z && !is_complex(z) ? trama_scale_at(where, z, 0) : apply1(where, &trama_op_imag, z);
}

trama_value *trama_abs_at(trama_where where, trama_value *x)
{
    return apply1(where, x && is_complex(x) ? &trama_op_magnitude : &trama_op_abs, x);
}

trama_value *trama_complex_at(trama_where where, trama_value *re, trama_value *im)
{
    return apply2(where, &trama_op_complex_of, re, im);
}

trama_value *trama_angle_at(trama_where where, trama_value *z)
{
    return trama_atan2_at(where, trama_imag_at(where, z), trama_real_at(where, z));
}

/* ---- Element types ---- */

trama_status part_dtype(const trama_node *node, trama_dtype *dtype)
{
    *dtype = dtype_part(node->in[0]->dtype);
    return TRAMA_OK;
}

trama_status complex_of_dtype(const trama_node *node, trama_dtype *dtype)
{
    const trama_status status = node_same_dtype(node, dtype);
    if (status)
        return status;
    if (*dtype != TRAMA_F32 && *dtype != TRAMA_F64)
        return trama_fail(node->where, TRAMA_E_DTYPE, "complex of %s (%s): parts are f32 or f64: cast them",
                          node->in[0]->name, trama_dtype_name(*dtype));
    *dtype = *dtype == TRAMA_F32 ? TRAMA_C64 : TRAMA_C128;
    return TRAMA_OK;
}

/* ---- Gradients, dL/da + i dL/db ---- */

void conj_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_conj_at(node->where, d_out[0]);
}

void real_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_cast_at(node->where, d_out[0], node->in[0]->dtype);
}

void imag_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    d_in[0] = trama_complex_at(node->where, scalar_like(node->where, d_out[0], 0), d_out[0]);
}

void complex_of_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    if (node_wants(node, 0))
        d_in[0] = gradient_unbroadcast(trama_real_at(node->where, d_out[0]), node->in[0]);
    if (node_wants(node, 1))
        d_in[1] = gradient_unbroadcast(trama_imag_at(node->where, d_out[0]), node->in[1]);
}

/* g z / |z|, and 0 where z is 0 */
void magnitude_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    const trama_where where = node->where;
    trama_value *size = node->out[0], *is_0 = trama_equal_at(where, size, scalar_like(where, size, 0));
    trama_value *divisor = trama_select_at(where, is_0, scalar_like(where, size, 1), size);
    trama_value *slope = trama_cast_at(where, trama_div_at(where, d_out[0], divisor), node->in[0]->dtype);
    d_in[0] = trama_mul_at(where, slope, node->in[0]);
}
