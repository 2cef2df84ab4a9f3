/* SPDX-License-Identifier: Apache-2.0 */
/* trama rule: on which layouts an op computes, and which its results get, from those at hand. */
#define _GNU_SOURCE /* asprintf */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"
#include "rule_build.h"
#include "rule_sample.h"

static const struct argp_option options[] = {
    {"mesh", 'm', "SPEC", 0, "the mesh, as 2,3 or dp=2,mp=3, with weights as dp=[3,1]", 0},
    {"in", 'i', "SHAPE:LAYOUT", 0,
     "an operand, in order: 64,32:1,0 or 64,32:S(1),S(0) or 64,32:[1,-1] P{0:sum}; `:` is a scalar; without :LAYOUT "
     "it is not split",
     0},
    {"out", 'o', "SHAPE:LAYOUT", 0, "a result, in order; with --backward", 0},
    {"attr", 'a', "NAME=VALUE", 0, "an attribute of the op", 0},
    {"backward", 'b', NULL, 0, "infer from the results: how would the operands have to lie?", 0},
    {"list", 'l', NULL, 0, "name all ops: operands and results, the dims that may be split, attributes", 0},
    {0}};

static const char doc[] =
    "Shows the layouts that the rule of an op infers: a line for each operand and result, with the mesh axis that "
    "splits each dim, -1 for none, and the axes along which it is partial.\v"
    "OP is a name of --list, with the attributes that it may have:\n"
    "  trans_x=1 trans_y=1    operands are transposed\n"
    "  axis=0,2               dims [none: all are reduced]; of argmax, argmin and softmax one [-1, the last]\n"
    "  keepdim=1              reduced dims stay, with extent 1\n"
    "  last=1                 of equal elements the last\n"
    "  perm=1,0               of dims [reversed]\n"
    "  shape=72,3             of the result\n"
    "  dtype=f32              of the result [f64]\n"
    "  factor=-2 offset=1     [1, 0]\n"
    "  scalar=3               the operand that is a number [1]\n"
    "  start=3 step=-1        [0, 1]\n"
    "  NAME=N,N               of other ops, by the names of --list, which trama_ops.h and its like explain [0]\n"
    "--list has a letter for each dim of the operands of a call: s, a split of it stays; p, it stays, and a result is "
    "a "
    "partial value; r, ops that exchange numbers of parts replace the call, where that receives fewer bytes; "
    "-, "
    "the dim is gathered. CPU only: a GPU has no kernel for the op, or none for complex numbers, so a "
    "CPU worker beside it computes the call. No gradient: the op ends the path of a gradient, as a constant does.\n"
    "Every split that can stay stays. A dim that is not split may become split, which costs nothing.";

/* An operand or result as the user wrote it. */
typedef struct tensors {
    int n;
    const char *text[TRAMA_MAX_OPERANDS];
    trama_shape shape[TRAMA_MAX_OPERANDS];
    trama_layout layout[TRAMA_MAX_OPERANDS];
} tensors;

typedef struct request {
    const char *op, *mesh_text, *attribute[MOST_ATTRIBUTES];
    int n_attributes;
    bool backward;
    tensors in, out;
    trama_mesh *mesh;
    trama_program *program;
    trama_value *value;
} request;

/* ---- Options ---- */

static void add_text(struct argp_state *state, const char *option, const char *text, int most, int *n,
                     const char **list)
{
    if (*n == most)
        argp_error(state, "%s '%s': there are at most %d", option, text, most);
    list[(*n)++] = text;
}

/* A layout as trama_layout_parse takes it: a dims mapping may lack its brackets. The caller frees. */
static char *full_form(const char *text)
{
    char *full = NULL;
    text += strspn(text, " ");
    bool bare = !*text || strchr("-0123456789", *text) || !strncmp(text, "P{", 2);
    int length = (int)strspn(text, "0123456789+-, ");
    if ((bare ? asprintf(&full, "[%.*s]%s", length, text, text + length) : asprintf(&full, "%s", text)) < 0)
        fail("no memory for a layout");
    return full;
}

/* Shapes and layouts out of the texts. */
static void read_tensors(struct argp_state *state, const char *option, const trama_mesh *mesh, tensors *list)
{
    for (int i = 0; i < list->n; i++) {
        size_t length = strcspn(list->text[i], ":");
        bool laid_out = list->text[i][length];
        char *shape = strndup(list->text[i], length);
        char *layout = full_form(laid_out ? list->text[i] + length + 1 : "");
        list->shape[i] = argument_shape(state, option, shape);
        list->layout[i].naxes = trama_mesh_ndim(mesh); /* all open */
        if (laid_out && trama_layout_parse(mesh, list->shape[i].ndim, layout, &list->layout[i]))
            argp_error(state, "%s '%s': %s", option, list->text[i], trama_error());
        free(shape);
        free(layout);
    }
}

static void build(struct argp_state *state, request *r)
{
    rule_op op = {.state = state, .name = r->op, .n_in = r->in.n, .n_attributes = r->n_attributes};
    memcpy(op.in, r->in.shape, sizeof op.in);
    memcpy(op.in_text, r->in.text, sizeof op.in_text);
    memcpy(op.attribute, r->attribute, sizeof op.attribute);
    r->program = trama_program_create();
    r->value = build_op(r->program, &op);
}

static void check_results(struct argp_state *state, const request *r)
{
    int n = trama_value_results(r->value);
    if (r->out.n != n)
        argp_error(state, "--backward: %s takes %d --out, not %d", r->op, n, r->out.n);
    for (int i = 0; i < n; i++)
        if (!trama_shape_equal(r->out.shape[i], trama_value_shape(trama_result(r->value, i))))
            argp_error(state, "--out '%s': that is not the shape of result %d of %s", r->out.text[i], i, r->op);
}

static void understand(struct argp_state *state, request *r)
{
    if (!r->op)
        argp_error(state, "the op is missing");
    if (!r->mesh_text)
        argp_error(state, "--mesh is missing");
    if (r->out.n && !r->backward)
        argp_error(state, "--out '%s': only with --backward", r->out.text[0]);
    if (r->backward && !r->out.n)
        argp_error(state, "--backward: --out is missing");
    r->mesh = argument_mesh(state, "--mesh", r->mesh_text, 0, NULL);
    read_tensors(state, "--in", r->mesh, &r->in);
    read_tensors(state, "--out", r->mesh, &r->out);
    build(state, r);
    if (r->backward)
        check_results(state, r);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    request *r = state->input;
    switch (key) {
    case 'm':
        r->mesh_text = text;
        return 0;
    case 'i':
        add_text(state, "--in", text, TRAMA_MAX_OPERANDS, &r->in.n, r->in.text);
        return 0;
    case 'o':
        add_text(state, "--out", text, TRAMA_MAX_OPERANDS, &r->out.n, r->out.text);
        return 0;
    case 'a':
        add_text(state, "--attr", text, MOST_ATTRIBUTES, &r->n_attributes, r->attribute);
        return 0;
    case 'b':
        r->backward = true;
        return 0;
    case 'l':
        list_ops(state);
        exit(EXIT_SUCCESS);
    case ARGP_KEY_ARG:
        if (r->op)
            argp_error(state, "'%s': there is an op already, %s", text, r->op);
        r->op = text;
        return 0;
    case ARGP_KEY_END:
        understand(state, r);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The answer ---- */

static void print_layout(const request *r, const char *word, int i, const trama_value *value,
                         const trama_layout *layout)
{
    char *mapping = trama_layout_mapping(r->mesh, trama_value_shape(value).ndim, layout);
    printf("%s%d %s\n", word, i, mapping);
    trama_text_free(&mapping);
}

int command_rule(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .args_doc = "OP", .doc = doc};
    request r = {.op = NULL};
    trama_layout in[TRAMA_MAX_OPERANDS], out[TRAMA_MAX_OPERANDS];
    argp_parse(&parser, argc, argv, 0, NULL, &r);
    must(trama_rule_infer(r.value, r.mesh, r.in.layout, r.backward ? r.out.layout : NULL, in, out));
    for (int i = 0; i < trama_value_operands(r.value); i++)
        print_layout(&r, "in", i, trama_value_operand(r.value, i), &in[i]);
    for (int i = 0; i < trama_value_results(r.value); i++)
        print_layout(&r, "out", i, trama_result(r.value, i), &out[i]);
    trama_program_destroy(&r.program);
    trama_mesh_destroy(&r.mesh);
    return EXIT_SUCCESS;
}
