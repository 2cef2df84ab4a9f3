/* SPDX-License-Identifier: Apache-2.0 */
/* A small language model learns a text, character by character: blocks of attention and perceptron (Vaswani et al.
 * 2017) on any mesh of the axes dp and mp. A batch is split along dp. Along mp only the two input weights of each block
 * are annotated, by columns; the layouts of all other values follow. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "auto_option.h"
#include "must.h"
#include "optimizer_options.h"
#include "progress.h"
#include "run_options.h"

enum { CHARACTERS = 256, PER_HEAD = 32 };

/* ---- Options ---- */

typedef struct options {
    trama_mesh *mesh;
    int64_t blocks, features, batch, length, steps;
    uint64_t seed;
    optimizer_options optimizer;
    plan_form plan;             /* print it, and do not train */
    const char *text, *machine; /* machine: of --auto, and then mesh is NULL */
} options;

enum { KEY_MESH = 256, KEY_BLOCKS, KEY_FEATURES, KEY_BATCH, KEY_LENGTH, KEY_STEPS, KEY_SEED, KEY_TEXT };

static const struct argp_option argp_options[] = {
    {"mesh", KEY_MESH, "SPEC", 0,
     "1, dp=2, mp=2, dp=2,mp=2, ...: dp splits the batch, mp heads and hidden features (1)", 0},
    {"blocks", KEY_BLOCKS, "N", 0, "Blocks (2)", 0},
    {"features", KEY_FEATURES, "N", 0, "Features of a character, a multiple of 32; a head has 32 (128)", 0},
    {"batch", KEY_BATCH, "N", 0, "Sequences of a step (8)", 0},
    {"length", KEY_LENGTH, "N", 0, "Characters of a sequence (64)", 0},
    {"steps", KEY_STEPS, "N", 0, "Steps (200)", 0},
    {"seed", KEY_SEED, "N", 0, "Of the weights and of the choice of sequences (1)", 0},
    {"text", KEY_TEXT, "FILE", 0, "The text to learn (/usr/share/common-licenses/GPL-3)", 0},
    {0},
};

static const char argp_doc[] =
    "Trains a transformer to predict the next character of a text.\v"
    "A step's loss is the mean of -log of the probability of the character that follows; the "
    "last line has those of the first step and of the last one.";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    static const char *const axes[] = {"dp", "mp"};
    options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->optimizer;
        state->child_inputs[1] = &o->plan;
        state->child_inputs[2] = &o->machine;
        return 0;
    case ARGP_KEY_END:
        auto_check(state, o->machine, &o->mesh);
        return 0;
    case KEY_MESH:
        trama_mesh_destroy(&o->mesh);
        o->mesh = argument_mesh(state, "--mesh", text, 2, axes);
        return 0;
    case KEY_BLOCKS:
        o->blocks = argument_integer(state, "--blocks", text, 1, 1000);
        return 0;
    case KEY_FEATURES:
        o->features = argument_integer(state, "--features", text, PER_HEAD, 1 << 16);
        if (o->features % PER_HEAD)
            argp_error(state, "--features %s: a head has %d features, so it takes a multiple of %d", text, PER_HEAD,
                       PER_HEAD);
        return 0;
    case KEY_BATCH:
        o->batch = argument_integer(state, "--batch", text, 1, 1 << 20);
        return 0;
    case KEY_LENGTH:
        o->length = argument_integer(state, "--length", text, 1, 1 << 20);
        return 0;
    case KEY_STEPS:
        o->steps = argument_integer(state, "--steps", text, 1, INT64_C(1000000000));
        return 0;
    case KEY_SEED:
        o->seed = argument_unsigned(state, "--seed", text);
        return 0;
    case KEY_TEXT:
        o->text = text;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

static options parse(int argc, char **argv)
{
    options o = {.blocks = 2,
                 .features = 128,
                 .batch = 8,
                 .length = 64,
                 .steps = 200,
                 .seed = 1,
                 .text = "/usr/share/common-licenses/GPL-3"};
    const struct argp_child children[] = {{.argp = &optimizer_argp}, {.argp = &run_argp}, {.argp = &auto_argp}, {0}};
    const struct argp parser = {.options = argp_options, .parser = parse_option, .doc = argp_doc, .children = children};
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    return o;
}

/* ---- The network ---- */

typedef struct model {
    const options *o;
    trama_program *program;
    uint64_t stream;              /* of the next parameter */
    trama_value *tokens, *labels; /* [batch, length], [batch * length]: the character behind each */
    trama_value *loss;
    trama_target *train;
} model;

/* Lays a value out where the mesh has the axis that the layout names; not where there is no mesh. */
static void split(trama_value *value, const trama_mesh *mesh, const char *axis, const char *layout)
{
    for (int i = 0; mesh && i < trama_mesh_ndim(mesh); i++)
        if (trama_mesh_axis_name(mesh, i) && !strcmp(trama_mesh_axis_name(mesh, i), axis))
            trama_shard(value, mesh, layout);
}

/* Uniform within the bound. */
static trama_value *parameter(model *m, const char *name, int block, double bound, trama_shape shape)
{
    const trama_init init = {.low = -bound, .high = bound, .seed = m->o->seed, .stream = m->stream++};
    char full[48];
    snprintf(full, sizeof full, "%s%d", name, block);
    return trama_parameter(m->program, full, TRAMA_F32, shape, &init);
}

static trama_value *constant(model *m, const char *name, int block, double number)
{
    const trama_init init = {.low = number, .high = number};
    char full[48];
    snprintf(full, sizeof full, "%s%d", name, block);
    return trama_parameter(m->program, full, TRAMA_F32, TRAMA_SHAPE(m->o->features), &init);
}

/* Each row of x with mean 0 and variance 1, then scaled and moved (Ba et al. 2016). */
static trama_value *norm(model *m, const char *scale, const char *offset, int block, trama_value *x)
{
    return trama_layer_norm(x, 1, constant(m, scale, block, 1), constant(m, offset, block, 0), 1e-5);
}

static trama_value *weight(model *m, const char *name, int block, int64_t in, int64_t out)
{
    return parameter(m, name, block, 1 / sqrt((double)in), TRAMA_SHAPE(in, out));
}

/* x [batch * length, features]. The columns of qkv are ordered by heads, then queries, keys and values, so that a part
 * of them has whole heads. */
static trama_value *attention(model *m, int block, trama_value *x)
{
    const options *o = m->o;
    const int64_t heads = o->features / PER_HEAD;
    trama_value *in[3], *w = weight(m, "qkv", block, o->features, 3 * o->features);
    split(w, o->mesh, "mp", "[-,mp]");
    trama_value *all = trama_reshape(trama_matmul(x, w), TRAMA_SHAPE(o->batch, o->length, heads, 3, PER_HEAD));
    all = trama_transpose(all, ((int[]){3, 0, 2, 1, 4}));
    for (int i = 0; i < 3; i++)
        in[i] = trama_squeeze(trama_slice(all, 0, i, 1), 0);
    trama_value *out = trama_transpose(trama_attention_causal(in[0], in[1], in[2]), ((int[]){0, 2, 1, 3}));
    out = trama_reshape(out, TRAMA_SHAPE(o->batch * o->length, o->features));
    return trama_matmul(out, weight(m, "out", block, o->features, o->features));
}

static trama_value *perceptron(model *m, int block, trama_value *x)
{
    const int64_t features = m->o->features, hidden = 4 * features;
    trama_value *w = weight(m, "up", block, features, hidden);
    split(w, m->o->mesh, "mp", "[-,mp]");
    return trama_matmul(trama_gelu(trama_matmul(x, w)), weight(m, "down", block, hidden, features));
}

static model build(const options *o)
{
    model m = {.o = o, .program = trama_program_create()};
    m.tokens = trama_input(m.program, "tokens", TRAMA_I64, TRAMA_SHAPE(o->batch, o->length));
    m.labels = trama_input(m.program, "labels", TRAMA_I64, TRAMA_SHAPE(o->batch * o->length));
    split(m.tokens, o->mesh, "dp", "[dp,-]");
    trama_value *table = parameter(&m, "characters", 0, 0.1, TRAMA_SHAPE(CHARACTERS, o->features));
    trama_value *place = parameter(&m, "places", 0, 0.1, TRAMA_SHAPE(o->length, o->features));
    trama_value *x = trama_add(trama_embedding(table, m.tokens), place);
    x = trama_reshape(x, TRAMA_SHAPE(o->batch * o->length, o->features));
    for (int i = 0; i < o->blocks; i++) {
        x = trama_add(x, attention(&m, i, norm(&m, "scale_a", "offset_a", i, x)));
        x = trama_add(x, perceptron(&m, i, norm(&m, "scale_p", "offset_p", i, x)));
    }
    x = norm(&m, "scale", "offset", 0, x);
    m.loss = trama_cross_entropy(trama_matmul(x, weight(&m, "last", 0, o->features, CHARACTERS)), m.labels);
    trama_optimizer optimizer = optimizer_chosen(&o->optimizer, o->steps);
    m.train = trama_target_create(m.program, "train", trama_minimize(m.loss, &optimizer), m.loss);
    return m;
}

/* ---- The text ---- */

typedef struct corpus {
    unsigned char *at;
    int64_t n;
    uint64_t random; /* the same on every rank */
    int64_t *tokens, *labels;
} corpus;

static corpus read_corpus(const options *o)
{
    corpus c = {.random = o->seed};
    FILE *file = fopen(o->text, "rb");
    const int64_t most = 1 << 24, count = o->batch * o->length;
    if (!file)
        fail("--text %s: %s; name a text of your own", o->text, strerror(errno));
    c.at = must_allocate(most, 1);
    c.n = (int64_t)fread(c.at, 1, (size_t)most, file);
    if (ferror(file))
        fail("--text %s: %s", o->text, strerror(errno));
    fclose(file);
    if (c.n <= o->length)
        fail("--text %s has %lld characters; sequences of %lld need one more at least", o->text, (long long)c.n,
             (long long)o->length);
    c.tokens = must_allocate(count, sizeof *c.tokens);
    c.labels = must_allocate(count, sizeof *c.labels);
    return c;
}

/* Feeds sequences that begin anywhere in the text (Knuth's generator, TAOCP 3.3.4). */
static void feed(const model *m, trama_executable *executable, corpus *c)
{
    const options *o = m->o;
    for (int64_t i = 0; i < o->batch; i++) {
        c->random = c->random * 6364136223846793005u + 1442695040888963407u;
        const int64_t from = (int64_t)((c->random >> 20) % (uint64_t)(c->n - o->length));
        for (int64_t k = 0; k < o->length; k++) {
            c->tokens[i * o->length + k] = c->at[from + k];
            c->labels[i * o->length + k] = c->at[from + k + 1];
        }
    }
    must(trama_feed(executable, m->tokens, c->tokens, TRAMA_SHAPE(o->batch, o->length)));
    must(trama_feed(executable, m->labels, c->labels, TRAMA_SHAPE(o->batch * o->length)));
}

static void corpus_free(corpus *c)
{
    free(c->at);
    free(c->tokens);
    free(c->labels);
}

/* ---- The program ---- */

static void train(const model *m, trama_executable *executable, corpus *c, bool speaks)
{
    const options *o = m->o;
    progress shown = progress_begin(speaks, o->steps);
    float first = 0, loss = 0;
    const double begun = clock_seconds();
    for (int64_t step = 0; step < o->steps; step++) {
        feed(m, executable, c);
        must(trama_run(executable, m->train));
        must(trama_read(executable, m->loss, &loss, sizeof loss));
        first = step ? first : loss;
        progress_tell(&shown, step + 1, (step + 1) * o->batch * o->length, loss);
    }
    const double seconds = clock_seconds() - begun;
    if (speaks)
        printf("loss %.4f, at first %.4f, %.2f s, %.0f characters/s\n", loss, first, seconds,
               (double)(o->steps * o->batch * o->length) / seconds);
}

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    corpus text = read_corpus(&o);
    model m = build(&o);
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    must(trama_start(NULL, &context));
    auto_choose(context, m.train, o.machine, 0);
    must(trama_compile(context, m.program, &executable));
    if (o.plan) {
        feed(&m, executable, &text);
        must(plan_print(context, executable, m.train, o.plan, 1));
    } else {
        train(&m, executable, &text, trama_context_rank(context) == 0);
    }
    must(trama_executable_destroy(&executable));
    must(trama_stop(&context));
    trama_program_destroy(&m.program);
    trama_mesh_destroy(&o.mesh);
    corpus_free(&text);
    return 0;
}
