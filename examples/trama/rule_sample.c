/* SPDX-License-Identifier: Apache-2.0 */
/* The list of ops: for a sample call of each, the dims of its operands that may be split. */
#include "rule_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "must.h"
#include "rule_build.h"

/* Calls of ops that do not take operands of one shape without attributes: shapes, - of a scalar, and attributes, with
 * blanks between. */
static const struct sample {
    const char *op, *shapes, *attributes;
} samples[] = {
    {"matmul", "4,6 6,8", ""},
    {"cast", "4,6", "dtype=f64"},
    {"gather", "4,6 8", ""},
    {"gather_grad", "8,6 8 4,6", ""},
    {"gather_along", "4,6 8,6", ""},
    {"gather_along_grad", "8,6 8,6 4,6", ""},
    {"scatter", "4,6 8 8,6", ""},
    {"scatter_along", "4,6 8,6 8,6", ""},
    {"stride", "4,6", "step=2,1"},
    {"flip", "4,6", "axes=1"},
    {"top_k", "4,6", "k=2"},
    {"rfft", "4,6", "axis=1 n=6"},
    {"irfft", "4,4", "axis=1 n=6"},
    {"attention", "2,4,6,8 2,4,10,8 2,4,10,12", ""},
    {"attention_masked", "2,4,6,8 2,4,10,8 2,4,10,12 6,10", ""},
    {"attention_grad", "2,4,6,8 2,4,10,8 2,4,10,12 2,4,6 2,4,6 2,4,6,12", ""},
    {"attention_masked_grad", "2,4,6,8 2,4,10,8 2,4,10,12 6,10 2,4,6 2,4,6 2,4,6,12", ""},
    {"norm_grad", "4,6 4,6 1,6", ""},
    {"conv", "2,4,6,8 10,4,3,3", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 groups=1"},
    {"conv_transposed", "2,4,6,8 4,10,3,3", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 groups=1"},
    {"conv_weights", "2,4,6,8 2,10,6,8", "stride=1,1 dilation=1,1 before=1,1 extent=3,3 groups=1"},
    {"max_pool", "2,4,6,8", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 kernel=3,3"},
    {"max_unpool", "2,4,6,8 2,4,6,8", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 kernel=3,3"},
    {"max_pool_at", "2,4,6,8 2,4,6,8", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 kernel=3,3"},
    {"sum_pool", "2,4,6,8", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 kernel=3,3"},
    {"sum_unpool", "2,4,6,8", "stride=1,1 dilation=1,1 before=1,1 extent=6,8 kernel=3,3"},
    {"expand", "6 4,6", "axis=0"},
    {"cross_entropy", "4,6 4", ""},
    {"cross_entropy_grad", "4,6 4 -", ""},
    {"reshape", "4,6", "shape=24"},
    {"reshape_like", "24 4,6", "shape=4,6"},
    {"window", "4,6", "dim=2,6 offset=1,0"},
    {"fill", "", "shape=4,6"},
    {"arange", "", "shape=4,6"},
    {"uniform", "", "shape=4,6"},
    {"draw", "-", "shape=4,6"},
    {"accumulate", "4,6 4,6 - -", ""},
    {"assign_if", "4,6 4,6 -", ""},
    {"schedule", "-", ""},
    {"descend", "4,6 4,6 - -", ""},
    {"momentum", "4,6 4,6 4,6 - -", ""},
    {"adam", "4,6 4,6 4,6 4,6 - - -", ""},
    {"lamb", "4,6 4,6 4,6 4,6 - -", ""},
};

static struct sample sample_of(const char *name)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (!strcmp(samples[i].op, name))
            return samples[i];
    return (struct sample){name, NULL, ""};
}

/* The words of a text that is cut at its blanks; returns their number. */
static int cut(char *text, int most, const char **words)
{
    int n = 0;
    for (char *next, *word = strtok_r(text, " ", &next); word && n < most; word = strtok_r(NULL, " ", &next))
        words[n++] = word;
    return n;
}

static trama_value *build_sample(const struct argp_state *state, trama_program *program, const trama_op *op)
{
    char shapes[128], attributes[128];
    const struct sample s = sample_of(op->name);
    rule_op asked = {.state = state, .name = op->name, .n_in = op->n_in};
    snprintf(shapes, sizeof shapes, "%s", s.shapes ? s.shapes : "");
    snprintf(attributes, sizeof attributes, "%s", s.attributes);
    asked.n_attributes = cut(attributes, MOST_ATTRIBUTES, asked.attribute);
    const int n = cut(shapes, TRAMA_MAX_OPERANDS, asked.in_text);
    for (int i = 0; i < op->n_in; i++) {
        if (i >= n)
            asked.in_text[i] = "4,6";
        if (!strcmp(asked.in_text[i], "-"))
            asked.in_text[i] = "";
        asked.in[i] = argument_shape(state, "--in", asked.in_text[i]);
    }
    return build_op(program, &asked);
}

/* What a split of one dim of an operand becomes: s, it stays, and with it no result is a sum; p, it stays, and a result
 * is a term of a sum or of another reduction; r, the op's split form may replace it; -, the operand is gathered. */
static char split_of(const trama_op *op, const trama_value *value, const trama_mesh *mesh, int operand, int dim)
{
    trama_layout in[TRAMA_MAX_OPERANDS], to[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    for (int i = 0; i < trama_value_operands(value); i++)
        must(trama_layout_parse(mesh, trama_value_shape(trama_value_operand(value, i)).ndim, "?", &in[i]));
    in[operand].axis[0] = (trama_placement){.kind = TRAMA_SPLIT, .dim = dim};
    must(trama_rule_infer(value, mesh, in, NULL, to, out));
    if (to[operand].axis[0].kind != TRAMA_SPLIT || to[operand].axis[0].dim != dim)
        return op->split_form && trama_value_shape(trama_value_operand(value, operand)).dim[dim] > 1 ? 'r' : '-';
    for (int i = 0; i < trama_value_results(value); i++)
        if (out[i].axis[0].kind == TRAMA_PARTIAL)
            return 'p';
    return 's';
}

static void print_splits(const struct argp_state *state, const trama_mesh *mesh, const trama_op *op)
{
    trama_program *program = trama_program_create();
    const trama_value *value = build_sample(state, program, op);
    for (int i = 0; i < trama_value_operands(value); i++) {
        printf("%s", i ? "," : "");
        for (int d = 0; d < trama_value_shape(trama_value_operand(value, i)).ndim; d++)
            printf("%c", split_of(op, value, mesh, i, d));
    }
    trama_program_destroy(&program);
}

/* The element types that the op takes and its kernel for GPUs does not, and whether it lacks a gradient. */
static void print_remarks(const trama_op *op)
{
    const unsigned kinds = op->kinds ? op->kinds : ~(unsigned)TRAMA_KIND_COMPLEX;
    if (!op->gpu_kinds && !op->alias)
        printf("  (CPU only)");
    else if (kinds & TRAMA_KIND_COMPLEX & ~op->gpu_kinds && !op->alias)
        printf("  (complex: CPU only)");
    if (!op->gradient)
        printf("  (no gradient)");
}

void list_ops(const struct argp_state *state)
{
    trama_mesh *mesh = trama_mesh_create("2");
    for (int i = 0; trama_op_number(i); i++) {
        const trama_op *op = trama_op_number(i);
        const char *attributes = op_attributes(op->name);
        printf("%-18s %d -> %d  ", op->name, op->n_in, op->n_out);
        print_splits(state, mesh, op);
        printf("%s%s", *attributes ? "  " : "", attributes);
        print_remarks(op);
        printf("\n");
    }
    trama_mesh_destroy(&mesh);
}
