/* SPDX-License-Identifier: Apache-2.0 */
/* From the name of an op to the op in a program. Ops whose attributes have another form here than in the library, or
 * with operands that are not f32, stand in one table; others take their attributes by the names of the library. */
#include "rule_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "rule_attributes.h"

static const trama_where nowhere = {NULL, 0}; /* the user's lines are those of the shell */

/* ---- Builders ---- */

static trama_value *build_matmul(const building *b)
{
    return trama_matmul_at(nowhere, b->in[0], b->in[1], attribute_flag(b, "trans_x"), attribute_flag(b, "trans_y"));
}

static trama_value *build_softmax(const building *b)
{
    return trama_softmax_at(nowhere, b->in[0], attribute_axis(b));
}

static trama_value *apply(const building *b, const trama_attributes *attributes)
{
    return trama_apply_at(nowhere, b->program, b->op, b->asked->n_in, b->in, attributes);
}

static trama_value *build_softmax_grad(const building *b)
{
    trama_attributes a = {0};
    a.integer[attribute_slot(b->op, "axis")] = attribute_axis(b);
    return apply(b, &a);
}

/* The place of the largest or least element along a dim. */
static trama_value *build_place(const building *b)
{
    trama_attributes a = {0};
    a.integer[attribute_slot(b->op, "axes")] = (int64_t)1 << attribute_axis(b);
    a.integer[attribute_slot(b->op, "keep_dim")] = attribute_flag(b, "keepdim");
    a.integer[attribute_slot(b->op, "last")] = attribute_flag(b, "last");
    return apply(b, &a);
}

/* Reductions, and expand. The dims are those of the last operand, which for expand has the shape of the result. */
static trama_value *build_reduction(const building *b)
{
    trama_attributes a = {0};
    int ndim = trama_value_shape(b->in[b->op->n_in - 1]).ndim, list[TRAMA_MAX_NDIM], n = attribute_axes(b, ndim, list);
    int64_t *mask = &a.integer[attribute_slot(b->op, "axes")];
    *mask = n ? 0 : ((int64_t)1 << ndim) - 1;
    for (int i = 0; i < n; i++)
        *mask |= (int64_t)1 << list[i];
    a.integer[attribute_slot(b->op, "keep_dim")] = attribute_flag(b, "keepdim");
    return apply(b, &a);
}

static trama_value *build_transpose(const building *b)
{
    int ndim = trama_value_shape(b->in[0]).ndim, perm[TRAMA_MAX_NDIM];
    int n = attribute_dims(b, "perm", ndim, 0, perm);
    if (n && n != ndim)
        argp_error(b->asked->state, "--attr perm '%s': names %d dims, in0 has %d", attribute_value(b, "perm"), n, ndim);
    return trama_transpose_at(nowhere, b->in[0], n ? perm : NULL);
}

static trama_value *build_reshape(const building *b)
{
    return b->op->n_in == 2 ? trama_reshape_like_at(nowhere, b->in[0], attribute_shape(b), b->in[1])
                            : trama_reshape_at(nowhere, b->in[0], attribute_shape(b));
}

static trama_value *build_cast(const building *b)
{
    const char *text = attribute_value(b, "dtype");
    trama_dtype dtype = TRAMA_F64;
    if (text && trama_dtype_parse(text, &dtype))
        argp_error(b->asked->state, "--attr dtype '%s': %s", text, trama_error());
    return trama_cast_at(nowhere, b->in[0], dtype);
}

static double number(const building *b, const char *name, double otherwise)
{
    const char *text = attribute_value(b, name);
    return text ? argument_number(b->asked->state, attribute_option(name), text) : otherwise;
}

static trama_value *build_scale(const building *b)
{
    return trama_scale_at(nowhere, b->in[0], number(b, "factor", 1));
}

static trama_value *build_affine(const building *b)
{
    return trama_affine_at(nowhere, b->in[0], number(b, "factor", 1), number(b, "offset", 0));
}

static trama_value *build_div_scalar(const building *b)
{
    return trama_div_scalar_at(nowhere, b->in[0], number(b, "scalar", 1));
}

static trama_value *build_scalar_div(const building *b)
{
    return trama_scalar_div_at(nowhere, number(b, "scalar", 1), b->in[0]);
}

static trama_value *build_fill(const building *b)
{
    return trama_fill_at(nowhere, b->program, TRAMA_F32, attribute_shape(b), 0);
}

static trama_value *build_uniform(const building *b)
{
    return trama_uniform_fixed_at(nowhere, b->program, TRAMA_F32, attribute_shape(b), 0, 1, 0, 0, 0);
}

static void write_shape(const building *b, trama_attributes *a)
{
    const trama_shape shape = attribute_shape(b);
    a->integer[attribute_slot(b->op, "ndim")] = shape.ndim;
    memcpy(&a->integer[attribute_slot(b->op, "shape")], shape.dim, (size_t)shape.ndim * sizeof *shape.dim);
}

static trama_value *build_draw(const building *b)
{
    trama_attributes a = {0};
    write_shape(b, &a);
    return apply(b, &a);
}

static trama_value *build_arange(const building *b)
{
    trama_attributes a = {0};
    write_shape(b, &a);
    a.integer[attribute_slot(b->op, "dtype")] = TRAMA_F32;
    a.real[attribute_slot(b->op, "start")] = number(b, "start", 0);
    a.real[attribute_slot(b->op, "step")] = number(b, "step", 1);
    return apply(b, &a);
}

/* Attributes by their names in ops.def: one number, or as many as the name has slots, the others being 0. */
static trama_value *build_by_name(const building *b)
{
    trama_attributes a = {0};
    for (int i = 0; i < b->asked->n_attributes; i++) {
        const char *text = b->asked->attribute[i], *numbers = strchr(text, '=') + 1;
        const op_slots s = attribute_slots(b->op, text, (size_t)(numbers - 1 - text));
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(numbers - 1 - text), text);
        if (s.real)
            a.real[s.first] = argument_number(b->asked->state, attribute_option(name), numbers);
        else
            argument_list(b->asked->state, attribute_option(name), numbers, INT64_MIN, INT64_MAX, s.count,
                          &a.integer[s.first]);
    }
    return apply(b, &a);
}

/* ---- The op ---- */

typedef struct known_op {
    const char *name, *attributes;
    trama_value *(*build)(const building *b);
    unsigned integers; /* bit i: operand i is i64, not f32 */
    unsigned bools;    /* bit i: it is bool */
} known_op;

#define WINDOWS "stride dilation before extent kernel"
static const known_op known_ops[] = {
    {"matmul", "trans_x trans_y", .build = build_matmul},
    {"argmax", "axis keepdim last", .build = build_place},
    {"argmin", "axis keepdim last", .build = build_place},
    {"expand", "axis keepdim", .build = build_reduction},
    {"softmax", "axis", .build = build_softmax},
    {"softmax_grad", "axis", .build = build_softmax_grad},
    {"transpose", "perm", .build = build_transpose},
    {"reshape", "shape", .build = build_reshape},
    {"reshape_like", "shape", .build = build_reshape},
    {"cast", "dtype", .build = build_cast},
    {"scale", "factor", .build = build_scale},
    {"affine", "factor offset", .build = build_affine},
    {"div_scalar", "scalar", .build = build_div_scalar},
    {"scalar_div", "scalar", .build = build_scalar_div},
    {"fill", "shape", .build = build_fill},
    {"arange", "shape start step", .build = build_arange},
    {"uniform", "shape", .build = build_uniform},
    {"draw", "shape", .build = build_draw, .integers = 1 << 0},
    {"cross_entropy", "", .build = build_by_name, .integers = 1 << 1},
    {"cross_entropy_grad", "", .build = build_by_name, .integers = 1 << 1},
    {"gather", "axis", .build = build_by_name, .integers = 1 << 1},
    {"gather_along", "axis", .build = build_by_name, .integers = 1 << 1},
    {"gather_grad", "axis", .build = build_by_name, .integers = 1 << 1},
    {"gather_along_grad", "axis", .build = build_by_name, .integers = 1 << 1},
    {"scatter", "axis how", .build = build_by_name, .integers = 1 << 1},
    {"scatter_along", "axis how", .build = build_by_name, .integers = 1 << 1},
    {"max_unpool", WINDOWS, .build = build_by_name, .integers = 1 << 1},
    {"max_pool_at", WINDOWS, .build = build_by_name, .integers = 1 << 1},
    {"select", "", .build = build_by_name, .bools = 1 << 0},
};

static known_op what_is_known(const char *name)
{
    for (size_t i = 0; i < sizeof known_ops / sizeof *known_ops; i++)
        if (!strcmp(name, known_ops[i].name))
            return known_ops[i];
    const trama_op *op = trama_op_find(name);
    if (op && !strcmp(op->attributes, "axes keep_dim"))
        return (known_op){.name = name, .attributes = "axis keepdim", .build = build_reduction};
    return (known_op){.name = name, .attributes = op ? attribute_names(op) : "", .build = build_by_name};
}

const char *op_attributes(const char *name)
{
    return what_is_known(name).attributes;
}

/* Whether the words, with blanks between, hold the n letters as one. */
static bool has_word(const char *words, const char *word, size_t n)
{
    for (; *words; words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        if (length == n && !strncmp(words, word, n))
            return true;
        words += length;
    }
    return false;
}

static void check_attributes(const rule_op *asked, const known_op *known)
{
    for (int i = 0; i < asked->n_attributes; i++) {
        const char *text = asked->attribute[i];
        size_t n = strcspn(text, "=");
        if (!text[n] || !n)
            argp_error(asked->state, "--attr '%s': takes name=value", text);
        if (!has_word(known->attributes, text, n))
            argp_error(asked->state, "--attr '%s': %s has no attribute %.*s; it has %s", text, asked->name, (int)n,
                       text, *known->attributes ? known->attributes : "none");
        for (int j = 0; j < i; j++)
            if (!strncmp(asked->attribute[j], text, n + 1))
                argp_error(asked->state, "--attr '%s': %.*s is given twice", text, (int)n, text);
    }
}

/* f32, where the op takes floats, and c64 where it takes complex numbers alone. */
static trama_dtype dtype_of(const building *b, const known_op *known, int operand)
{
    if (known->bools >> operand & 1)
        return TRAMA_BOOL;
    if (b->op->kinds == TRAMA_KIND_COMPLEX)
        return TRAMA_C64;
    const bool floats = !b->op->kinds || (b->op->kinds & TRAMA_KIND_FLOAT);
    return known->integers >> operand & 1 || !floats ? TRAMA_I64 : TRAMA_F32;
}

/* Inputs, or state where the op writes its result over them. */
static void make_operands(building *b, const known_op *known)
{
    for (int i = 0; i < b->asked->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        trama_dtype dtype = dtype_of(b, known, i);
        b->in[i] = b->op->updates >> i & 1 ? trama_state_at(nowhere, b->program, name, dtype, b->asked->in[i], NULL)
                                           : trama_input_at(nowhere, b->program, name, dtype, b->asked->in[i]);
    }
}

/* The library's message behind operands and attributes as they were written. */
static void refuse(const rule_op *asked, const char *message)
{
    char words[1024] = "";
    for (int i = 0; i < asked->n_in + asked->n_attributes; i++) {
        size_t length = strlen(words);
        bool operand = i < asked->n_in;
        snprintf(words + length, sizeof words - length, " %s '%s'", operand ? "--in" : "--attr",
                 operand ? asked->in_text[i] : asked->attribute[i - asked->n_in]);
    }
    argp_error(asked->state, "%s%s: %s", asked->name, words, message);
}

static size_t common_letters(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Names the ops that begin like the unknown one, longest beginnings only. */
static void refuse_name(const rule_op *asked)
{
    char names[512] = "";
    size_t most = 2;
    for (int i = 0; trama_op_number(i); i++)
        if (common_letters(asked->name, trama_op_number(i)->name) > most)
            most = common_letters(asked->name, trama_op_number(i)->name);
    for (int i = 0; trama_op_number(i); i++) {
        size_t length = strlen(names);
        if (common_letters(asked->name, trama_op_number(i)->name) == most)
            snprintf(names + length, sizeof names - length, " %s", trama_op_number(i)->name);
    }
    argp_error(asked->state, "there is no op '%s'; --list names all%s%s", asked->name,
               *names ? ", similar ones are" : "", names);
}

trama_value *build_op(trama_program *program, const rule_op *asked)
{
    building b = {.asked = asked, .op = trama_op_find(asked->name), .program = program};
    if (!b.op) {
        refuse_name(asked);
        return NULL;
    }
    if (asked->n_in != b.op->n_in)
        argp_error(asked->state, "%s takes %d --in, not %d", asked->name, b.op->n_in, asked->n_in);
    known_op known = what_is_known(asked->name);
    check_attributes(asked, &known);
    make_operands(&b, &known);
    trama_value *result = trama_program_status(program) ? NULL : known.build(&b);
    if (!result)
        refuse(asked, trama_program_error(program));
    return result;
}
