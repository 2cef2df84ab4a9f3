/* SPDX-License-Identifier: Apache-2.0 */
/* The cases, and how to build them. */
#include "tried_ops.h"
#include "trama_array.h"
#include "trama_ops.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define NONE .attributes = {{0}, {0}}
#define INTEGERS(...) .attributes = {.integer = {__VA_ARGS__}}
#define BY_ROWS(rows, ...) .attributes = {.integer = {__VA_ARGS__, [RESHAPE_ROWS] = rows}}
#define REALS(...) .attributes = {.real = {__VA_ARGS__}}
#define WINDOW(rows, columns, down, right)                                                                             \
    .attributes = {.integer = {rows, columns, [WINDOW_OFFSET] = down, [WINDOW_OFFSET + 1] = right}}
#define SOURCE(...) .integer = {TRAMA_F64, 2, __VA_ARGS__}

/* Letters of the domains of ops.def. */
#define REAL "r"
#define POSITIVE "p"
#define NONZERO "p"
#define INTEGER "s"
#define UNIT "u"
#define ABOVE_1 "a"
#define WIDE "w"
#define SPECIAL "n"

const tried_op tried_ops[] = {
#define UNARY(name, types, partial, flops, domain, ...) {#name, "7x5", domain, NONE},
#define BINARY(name, types, partial, flops, x, y, ...) BROADCAST(name, x, y)
#define COMPARISON(name, flops, x, y, ...) BROADCAST(name, x, y)
#define PREDICATE(name, flops, domain, ...) {#name, "7x5", domain, NONE},
#define UNARY_BITS(name, types, domain, ...) {#name, "7x5", domain, NONE},
#define BINARY_BITS(name, types, x, y, ...) BROADCAST(name, x, y)
#define BROADCAST(name, x, y)                                                                                          \
    {#name, "7x5,7x5", x y, NONE}, {#name, "5,7x5", x y, NONE}, {#name, "7x1,1x5", x y, NONE},                         \
        {#name, "3x7x1,5", x y, NONE},
#define REDUCTION(name, dtype, partial, infer, flops, domain, ...)                                                     \
    {#name, "7x5x3", domain, INTEGERS(7, 0)}, {#name, "7x5x3", domain, INTEGERS(2, 0)},                                \
        {#name, "7x5x3", domain, INTEGERS(5, 1)}, {#name, "2x5", domain, INTEGERS(1, 1)},
#include "ops.def"
    {"matmul", "7x5,5x3", "rr", NONE},
    {"matmul", "5x7,3x5", "rr", INTEGERS(1, 1)},
    {"matmul", "3x4x5,5x7", "rr", NONE},
    {"matmul", "1x3x5,4x7x5", "rr", INTEGERS(0, 1)},
    {"matmul", "4x2x3x1,3x5", "rr", INTEGERS(1, 0)},
    {"matmul", "2x0,0x5", "rr", NONE},
    {"matmul", "3x4x5,3x4x7", "rr", INTEGERS(1, 0, 1)},
    {"matmul", "2x3x1x5,2x3x1x1", "rr", INTEGERS(1, 0, 1)},
    {"matmul", "7x5,7x3", "rr", INTEGERS(1, 0, 1)},
    {"matmul", "0x4x5,0x4x7", "rr", INTEGERS(1, 0, 1)},
    {"matmul", "1x2,2x1", "rr", NONE},
    {"matmul", "7,7x5", "rr", NONE},
    {"matmul", "7x5,5", "rr", NONE},
    {"matmul", "7,7", "rr", NONE},
    {"matmul", "5,3x5x7", "rr", NONE},
    {"matmul", "5,3x7x5", "rr", INTEGERS(0, 1)},
    {"matmul", "3x7x5,5", "rr", NONE},
    {"matmul", "5x7,5", "rr", INTEGERS(1, 0)},
    {"matmul", "0,0", "rr", NONE},
    {"matmul", "1,1x2", "rr", NONE},
    {"add", "2x0,1", "rr", NONE},
    {"abs", "7x5", "r", NONE},
    {"scale", "7x5", "r", REALS(2.5)},
    {"scale", "7x5", "r", REALS(-1.5)},
    {"scale", "7x5", "r", REALS(0)},
    {"scale", "7x5", "s", REALS(1.5)},
    {"affine", "7x5", "r", REALS(2.5, 0.5)},
    {"affine", "7x5", "r", REALS(-1, 0.5)},
    {"affine", "7x5", "r", REALS(-1.5, 0)},
    {"affine", "7x5", "r", REALS(0, 0.5)},
    {"affine", "7x5", "s", REALS(-1, 3)},
    {"div_scalar", "7x5", "r", REALS(2.5)},
    {"div_scalar", "7x5", "r", REALS(-1.5)},
    {"scalar_div", "7x5", "p", REALS(2.5)},
    {"clamp", "7x5", "r", REALS(-0.9, 1.1)},
    {"cast", "7x5", "r", INTEGERS(TRAMA_F32)},
    {"cast", "7x5", "r", INTEGERS(TRAMA_BF16)},
    {"cast", "7x5", "r", INTEGERS(TRAMA_I32)},
    {"cast", "7x5", "s", INTEGERS(TRAMA_F64)},
    {"stop_gradient", "7x5", "r", NONE},
    {"sigmoid", "2x1", "r", NONE},
    {"relu_grad", "7x5,7x5", "rr", NONE},
    {"elu", "7x5", "r", REALS(0.7)},
    {"celu", "7x5", "r", REALS(0.7)},
    {"leaky_relu", "7x5", "r", REALS(0.1)},
    {"silu_grad", "7x5,7x5", "rr", NONE},
    {"mish_grad", "7x5,7x5", "rr", NONE},
    {"gelu_tanh_grad", "7x5,7x5", "rr", NONE},
    {"hard_sigmoid_grad", "7x5,7x5", "rw", NONE},
    {"hard_swish_grad", "7x5,7x5", "rw", NONE},
    {"selu_grad", "7x5,7x5", "rr", NONE},
    {"elu_grad", "7x5,7x5", "rr", REALS(0.7)},
    {"celu_grad", "7x5,7x5", "rr", REALS(0.7)},
    {"leaky_relu_grad", "7x5,7x5", "rr", REALS(0.1)},
    {"pow_slope_x", "7x5,7x5", "pr", NONE},
    {"pow_slope_y", "7x5,7x5", "pr", NONE},
    {"select", "7x5,7x5,7x5", "brr", NONE},
    {"select", "5,7x1,1x5", "brr", NONE},
    {"select", "7x5,,7x5", "brr", NONE},
    {"gelu_grad", "7x5,7x5", "rr", NONE},
    {"tanh_grad", "7x5,7x5", "rr", NONE},
    {"sigmoid_grad", "7x5,7x5", "rr", NONE},
    {"sum", "2x1x3", "r", INTEGERS(3, 1)},
    {"sum", "0x5", "r", INTEGERS(1, 0)},
    {"argmax", "7x5", "s", INTEGERS(2, 0)},
    {"argmax", "5x7x3", "r", INTEGERS(2, 1)},
    {"argmax", "1x2", "r", INTEGERS(1, 0)},
    {"argmax", "5x37", "s", INTEGERS(2, 0, 1)},
    {"argmax", "37x5", "s", INTEGERS(1, 0, 1)},
    {"argmin", "7x5", "s", INTEGERS(2, 1, 0)},
    {"argmin", "5x7x3", "s", INTEGERS(2, 0, 1)},
    {"argmin", "70x5", "r", INTEGERS(1, 0)},
    {"expand", "5,7x5", "rr", INTEGERS(1, 0, 0)},
    {"expand", "7x1x3,7x5x3", "rr", INTEGERS(2, 1, 1)},
    {"reshard", "7x5", "r", NONE},
    {"fill", "", "", {SOURCE(7, 5), .real = {1.5}}},
    {"arange", "", "", {SOURCE(7, 5), .real = {-1, 0.5}}},
    {"uniform", "", "", {SOURCE(7, 5), .real = {-1, 2}}},
    {"draw", "", "c", {SOURCE(7, 5), .real = {-1, 2}}},
    {"assign", "7x5,7x5", "rr", NONE},
    {"increment", "7x5", "r", NONE},
    {"increment", "", "c", NONE},
    {"sgd", "7x5,7x5", "rr", REALS(0.1)},
    {"accumulate", "7x5,7x5,,", "rrcr", NONE},
    {"assign_if", "7x5,7x5,", "rrc", NONE},
    {"schedule", "", "c", {.integer = {10}, .real = {0.5}}},
    {"descend", "7x5,7x5,,", "rrrc", REALS(0.01)},
    {"momentum", "7x5,7x5,7x5,,", "rrrrc", REALS(0.01, 0.9)},
    {"momentum", "7x5,7x5,7x5,,", "rrrrc", {.integer = {1}, .real = {0.01, 0.9}}},
    {"adam", "7x5,7x5,7x5,7x5,,,", "rrprrcc", REALS(0.01, 0.9, 0.999, 1e-8)},
    {"adam", "7x5,7x5,7x5,7x5,,,", "rrprrcc", {.integer = {1}, .real = {0.01, 0.9, 0.999, 1e-8}}},
    {"lamb", "7x5,7x5,7x5,7x5,,", "rprrcc", REALS(0.01, 0.9, 0.999, 1e-8)},
#define TRIED(...) {__VA_ARGS__},
#define CASE(...)
#include "attention_cases.def"
#include "index_cases.def"
#include "network_cases.def"
#include "norm_cases.def"
#include "scan_cases.def"
#include "shape_cases.def"
#include "window_cases.def"
};
const int n_tried_ops = sizeof tried_ops / sizeof *tried_ops;

static trama_shape shape_from(const char **at)
{
    trama_shape shape = {0};
    while (**at && **at != ',') {
        char *end;
        shape.dim[shape.ndim++] = strtol(*at + (**at == 'x'), &end, 10);
        *at = end;
    }
    *at += **at == ',';
    return shape;
}

/* Small integers, infinities and NaN in turns. */
static dense special(trama_shape shape, uint64_t seed)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    dense d = dense_random(shape, seed, -2, 2, true);
    for (int64_t i = 0; i < trama_shape_count(shape); i += 2)
        d.at[i] = odd[i / 2 % 3];
    return d;
}

dense tried_op_operand(const tried_op *c, int operand, trama_shape shape, uint64_t seed)
{
    switch (c->domain[operand]) {
    case 'p':
        return dense_random(shape, seed, 0.5, 2.5, false);
    case 'l':
        return dense_random(shape, seed, 0, 2, true);
    case 's':
        return dense_random(shape, seed, -2, 2, true);
    case 'w':
        return dense_random(shape, seed, -5, 5, false);
    case 'n':
        return special(shape, seed);
    case 'u':
        return dense_random(shape, seed, -0.9, 0.9, false);
    case 'a':
        return dense_random(shape, seed, 1.5, 4, false);
    case 'b':
        return dense_random(shape, seed, 0, 1, true);
    case 'c':
        return dense_random(shape, seed, 2, 5, true);
    default:
        return dense_random(shape, seed, -2, 2, false);
    }
}

trama_node *tried_op_node(const tried_op *c, trama_program *program)
{
    const trama_op *op = trama_op_find(c->op);
    const char *shapes = c->shapes;
    trama_value *in[TRAMA_MAX_OPERANDS];
    ck_assert_msg(op && (int)strlen(c->domain) == op->n_in, "%s: a wrong case", c->op);
    for (int i = 0; i < op->n_in; i++) {
        char domain = c->domain[i], name[] = {(char)('a' + i), 0};
        trama_dtype dtype = strchr("lc", domain) ? TRAMA_I64
                            : domain == 's'      ? TRAMA_I32
                            : domain == 'b'      ? TRAMA_BOOL
                                                 : TRAMA_F64;
        in[i] = op->updates >> i & 1 ? trama_state(program, name, dtype, shape_from(&shapes), NULL)
                                     : trama_input(program, name, dtype, shape_from(&shapes));
    }
    trama_value *result = trama_apply_at(TRAMA_HERE, program, op, op->n_in, in, &c->attributes);
    ck_assert_msg(result != NULL, "%s", trama_program_error(program));
    return result->node;
}

trama_node *tried_op_node_of(const tried_op *c, trama_dtype dtype, bool scalars_are_doubles, trama_program *p)
{
    const trama_op *op = trama_op_find(c->op);
    trama_program *pattern = trama_program_create();
    const trama_node *model = tried_op_node(c, pattern);
    trama_value *in[TRAMA_MAX_OPERANDS];
    for (int i = 0; i < op->n_in; i++) {
        const trama_value *m = model->in[i];
        const char name[] = {(char)('a' + i), 0};
        const bool counts = strchr("lcb", c->domain[i]) != NULL;
        const trama_dtype own = counts || (scalars_are_doubles && m->shape.ndim == 0) ? m->dtype : dtype;
        in[i] = op->updates >> i & 1 ? trama_state(p, name, own, m->shape, NULL) : trama_input(p, name, own, m->shape);
    }
    trama_value *result = trama_apply_at(TRAMA_HERE, p, op, op->n_in, in, &c->attributes);
    trama_program_destroy(&pattern);
    return result ? result->node : NULL;
}
