/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the built-in ops, expanded from ops.def. */
#include "families.h"

#include <string.h>

/* The gradient column: NONE, or DX(...), DX_DY(...) or DX_THEN_DY(...), for which op_gradient.c defines a function. */
#define GRADIENT_NONE(name) NULL
#define GRADIENT_DX(...) GRADIENT_OF
#define GRADIENT_DX_DY(...) GRADIENT_OF
#define GRADIENT_DX_THEN_DY(...) GRADIENT_OF
#define GRADIENT_OF(name) name##_gradient
#define OPERANDS_UNARY .n_in = 1, .rule = "...->..."
#define OPERANDS_BINARY .n_in = 2, .rule = "...,...->..."

/* Kernels for GPUs compute no complex numbers. */
#define OP(name_, in_, out_, rule_, partial_, infer_, dtype_, gradient_, attributes_, flops_, ...)                     \
    DESCRIBED(name_, in_, out_, rule_, partial_, infer_, dtype_, gradient_, attributes_, flops_, .gpu_kinds = REALS,   \
              __VA_ARGS__)
#define DESCRIBED(name_, in_, out_, rule_, partial_, infer_, dtype_, gradient_, attributes_, flops_, ...)              \
    const trama_op trama_op_##name_ = {.name = #name_,                                                                 \
                                       .n_in = in_,                                                                    \
                                       .n_out = out_,                                                                  \
                                       .rule = rule_,                                                                  \
                                       .partial = partial_,                                                            \
                                       .infer = infer_,                                                                \
                                       .dtype = dtype_,                                                                \
                                       .gradient = gradient_,                                                          \
                                       .attributes = attributes_,                                                      \
                                       .flops = flops_,                                                                \
                                       __VA_ARGS__};
#define POINTWISE(form, name_, types, partial_, attributes_, flops_, formula, gradient_, ...)                          \
    const trama_op trama_op_##name_ = {.name = #name_,                                                                 \
                                       .n_out = 1,                                                                     \
                                       OPERANDS_##form,                                                                \
                                       .partial = partial_,                                                            \
                                       .gradient = GRADIENT_##gradient_(name_),                                        \
                                       .attributes = attributes_,                                                      \
                                       .flops = flops_,                                                                \
                                       .pointwise = true,                                                              \
                                       .gpu_kinds = REALS,                                                             \
                                       .kinds = types,                                                                 \
                                       __VA_ARGS__};
#define COMPARISON(name, flops, domain_x, domain_y, formula)                                                           \
    POINTWISE(BINARY, name, 0, NULL, "", flops, formula, NONE, .dtype = comparison_dtype, .exact = true)
#define EQUALITY(name, flops, domain_x, domain_y, formula)                                                             \
    POINTWISE(BINARY, name, ANY_KIND, NULL, "", flops, formula, NONE, .dtype = comparison_dtype, .exact = true)
#define PREDICATE(name, flops, domain, formula)                                                                        \
    POINTWISE(UNARY, name, ANY_KIND, NULL, "", flops, formula, NONE, .dtype = comparison_dtype, .exact = true)
#define UNARY_BITS(name, types, domain, formula)                                                                       \
    POINTWISE(UNARY, name, types, NULL, "", 1, formula, NONE, .exact = true)
#define BINARY_BITS(name, types, domain_x, domain_y, formula)                                                          \
    POINTWISE(BINARY, name, types, NULL, "", 1, formula, NONE, .exact = true)
#define HOST(name, in, out, rule, partial, infer, dtype, gradient, attributes, flops, ...)                             \
    DESCRIBED(name, in, out, rule, partial, infer, dtype, gradient, attributes, flops, __VA_ARGS__)
#define PRODUCT(name, in, out, rule, partial, infer, dtype, gradient, attributes, flops, ...)                          \
    OP(name, in, out, rule, partial, infer, dtype, gradient, attributes, flops, .product = true, __VA_ARGS__)
#define REDUCTION(name, dtype, partial, infer, flops, domain, gradient, ...)                                           \
    OP(name, 1, 1, NULL, partial, infer, dtype, GRADIENT_##gradient(name), "axes keep_dim", flops, __VA_ARGS__)
#include "ops.def"

const trama_op *const trama_ops[] = {
#define OP(name, ...) &trama_op_##name,
#include "ops.def"
};
const int trama_n_ops = (int)(sizeof trama_ops / sizeof *trama_ops);

const trama_op *trama_op_number(int i)
{
    return i >= 0 && i < trama_n_ops ? trama_ops[i] : NULL;
}

const trama_op *trama_op_find(const char *name)
{
    for (int i = 0; name && i < trama_n_ops; i++)
        if (!strcmp(trama_ops[i]->name, name))
            return trama_ops[i];
    return NULL;
}

trama_value *apply1(trama_where where, const trama_op *op, trama_value *x)
{
    return program_append(NULL, where, op, 1, &x, NULL);
}

trama_value *apply2(trama_where where, const trama_op *op, trama_value *x, trama_value *y)
{
    return program_append(NULL, where, op, 2, (trama_value *[]){x, y}, NULL);
}

trama_value *trama_apply_at(trama_where where, trama_program *program, const trama_op *op, int n_in,
                            trama_value *const *in, const trama_attributes *attributes)
{
    const char *name = op ? op->name : "the op";
    bool countable = n_in >= 0 && n_in <= TRAMA_MAX_OPERANDS;
    for (int i = 0; !program && in && i < n_in && i < TRAMA_MAX_OPERANDS; i++)
        program = in[i] ? in[i]->program : NULL;
    if (!countable)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "apply: %d operands for %s; an op has 0 to %d", n_in,
                            name, TRAMA_MAX_OPERANDS);
    if (!op)
        return program_fail(program, where, TRAMA_E_ARGUMENT,
                            "apply: the op is NULL; trama_op_define makes one, trama_op_find has the built-in ones");
    if (n_in && !in)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "apply: the %d operands for %s are NULL", n_in, name);
    return program_append(program, where, op, n_in, in, attributes);
}

trama_value *trama_result(trama_value *value, int i)
{
    if (!value || value->kind != VALUE_RESULT || i < 0 || i >= value->node->op->n_out)
        return NULL;
    return value->node->out[i];
}
