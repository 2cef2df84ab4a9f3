/* SPDX-License-Identifier: Apache-2.0 */
/* The main job: a multi-layer perceptron learns Fashion-MNIST on any mesh of the axes dp and mp. The network is written
 * once, as if for one device; the mesh only adds a line for the batch and one for each weight. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "auto_option.h"
#include "checkpoint_options.h"
#include "dataset.h"
#include "must.h"
#include "optimizer_options.h"
#include "progress.h"
#include "run_options.h"

enum {
    CLASSES = 10,
    MAX_HIDDEN = 16,
    IN_FLIGHT = 2 /* runs whose results are not read yet, as many as the context's max_in_flight */
};

/* ---- Options ---- */

typedef struct options {
    trama_mesh *mesh;
    int n_hidden;
    int64_t hidden[MAX_HIDDEN], batch, merge, epochs, steps;
    optimizer_options optimizer;
    plan_form plan; /* print it, and do not train */
    checkpoint_options checkpoint;
    sampler_order order;
    trama_dtype dtype, compute; /* of parameters and their states; of the layers' computation */
    uint64_t seed;
    const char *data, *log, *stream, *machine; /* machine: of --auto, and then mesh is NULL */
} options;

enum {
    KEY_MESH = 256,
    KEY_HIDDEN,
    KEY_BATCH,
    KEY_MERGE,
    KEY_EPOCHS,
    KEY_STEPS,
    KEY_DTYPE,
    KEY_SEED,
    KEY_NO_SHUFFLE,
    KEY_DATA,
    KEY_STREAM,
    KEY_LOG
};

static const struct argp_option argp_options[] = {
    {"mesh", KEY_MESH, "SPEC", 0, "1, dp=2, mp=2, dp=2,mp=2, ...: dp splits the batch, mp the layers (1)", 0},
    {"hidden", KEY_HIDDEN, "N,...", 0, "Widths of the hidden layers (512,256)", 0},
    {"batch", KEY_BATCH, "N", 0, "Samples of a step (128)", 0},
    {"merge", KEY_MERGE, "K", 0, "Gradients of K steps are merged into one update; a step is a micro-step then (1)", 0},
    {"epochs", KEY_EPOCHS, "N", 0, "Times that all samples are taken (2)", 0},
    {"steps", KEY_STEPS, "N", 0, "Steps, instead of epochs", 0},
    {"dtype", KEY_DTYPE, "NAME", 0, "f32 (the default), f64; bf16, f16: layers compute in it, on weights that stay f32",
     0},
    {"seed", KEY_SEED, "N", 0, "Of the weights and of the shuffling (1)", 0},
    {"no-shuffle", KEY_NO_SHUFFLE, NULL, 0, "Take the samples in file order, over and over", 0},
    {"data", KEY_DATA, "DIR", 0, "Folder of the four IDX files", 0},
    {"stream", KEY_STREAM, "FOLDER", 0,
     "Read the training batches from files there while it trains; files that are missing are made of --data", 0},
    {"log", KEY_LOG, "FILE", 0, "Write step,loss,seconds of each step", 0},
    {0},
};

static const char argp_doc[] =
    "Trains a multi-layer perceptron on Fashion-MNIST.\v"
    "A step's loss is the one before its update. The last line's time and samples/s are those of the training.\n\n"
    "Layer i has w [in, out] from stream 2i of the seed, uniform in +-1/sqrt(in), and b [out], zeros. Along mp, w0 w2 "
    "... are split by column and w1 w3 ... by row; a last layer whose turn would be by column is replicated. How "
    "samples are shuffled is stated in examples/common/dataset.h; with --stream, in trama_feeder.h.";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    static const char *const axes[] = {"dp", "mp"}, *const dtypes[] = {"f32", "f64", "bf16", "f16"};
    static const trama_dtype computed[] = {TRAMA_F32, TRAMA_F64, TRAMA_BF16, TRAMA_F16};
    options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->optimizer;
        state->child_inputs[1] = &o->plan;
        state->child_inputs[2] = &o->checkpoint;
        state->child_inputs[3] = &o->machine;
        return 0;
    case ARGP_KEY_END:
        auto_check(state, o->machine, &o->mesh);
        return 0;
    case KEY_MESH:
        trama_mesh_destroy(&o->mesh);
        o->mesh = argument_mesh(state, "--mesh", text, 2, axes);
        return 0;
    case KEY_HIDDEN:
        o->n_hidden = argument_list(state, "--hidden", text, 1, 1 << 20, MAX_HIDDEN, o->hidden);
        return 0;
    case KEY_BATCH:
        o->batch = argument_integer(state, "--batch", text, 1, 1 << 20);
        return 0;
    case KEY_MERGE:
        o->merge = argument_integer(state, "--merge", text, 1, 1 << 20);
        return 0;
    case KEY_EPOCHS:
        o->epochs = argument_integer(state, "--epochs", text, 1, 1000000);
        return 0;
    case KEY_STEPS:
        o->steps = argument_integer(state, "--steps", text, 1, INT64_C(1000000000000));
        return 0;
    case KEY_DTYPE:
        o->compute = computed[argument_word(state, "--dtype", text, 4, dtypes)];
        o->dtype = o->compute == TRAMA_F64 ? TRAMA_F64 : TRAMA_F32;
        return 0;
    case KEY_SEED:
        o->seed = argument_unsigned(state, "--seed", text);
        return 0;
    case KEY_NO_SHUFFLE:
        o->order = SAMPLER_REPEATED;
        return 0;
    case KEY_DATA:
        o->data = text;
        return 0;
    case KEY_STREAM:
        o->stream = text;
        return 0;
    case KEY_LOG:
        o->log = text;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

static options parse(int argc, char **argv)
{
    options o = {.n_hidden = 2,
                 .hidden = {512, 256},
                 .batch = 128,
                 .merge = 1,
                 .epochs = 2,
                 .order = SAMPLER_SHUFFLED,
                 .dtype = TRAMA_F32,
                 .compute = TRAMA_F32,
                 .seed = 1};
    const struct argp_child children[] = {
        {.argp = &optimizer_argp}, {.argp = &run_argp}, {.argp = &checkpoint_argp}, {.argp = &auto_argp}, {0}};
    const struct argp parser = {.options = argp_options, .parser = parse_option, .doc = argp_doc, .children = children};
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    return o;
}

/* ---- The network ---- */

typedef struct model {
    trama_program *program;
    trama_value *x, *y; /* [batch, pixels], [batch] */
    trama_value *loss, *accuracy;
    trama_target *train, *eval;
} model;

/* Lays the value out: placed as told along the axis of that name, replicated along the others; not without a mesh. */
static void shard_along(trama_value *value, const trama_mesh *mesh, const char *axis_name, const char *placement)
{
    char layout[8 * TRAMA_MAX_AXES] = "";
    for (int axis = 0; axis < trama_mesh_ndim(mesh); axis++) {
        const char *name = trama_mesh_axis_name(mesh, axis);
        strcat(layout, axis ? "," : "");
        strcat(layout, name && !strcmp(name, axis_name) ? placement : "R");
    }
    if (mesh)
        trama_shard(value, mesh, layout);
}

static trama_value *as(trama_value *value, trama_dtype dtype)
{
    return trama_value_dtype(value) == dtype ? value : trama_cast(value, dtype);
}

/* Layer i: h [batch, in] -> h w + b [batch, out]. The layouts of b, of h and of all gradients follow from w's. */
static trama_value *layer(const options *o, trama_program *program, int i, int64_t in, int64_t out, trama_value *h)
{
    bool by_row = i % 2 == 1, last = i == o->n_hidden;
    double bound = 1 / sqrt((double)in);
    char weight[16], bias[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(bias, sizeof bias, "b%d", i);
    const trama_init uniform = {.low = -bound, .high = bound, .seed = o->seed, .stream = 2 * (uint64_t)i};
    trama_value *w = trama_parameter(program, weight, o->dtype, TRAMA_SHAPE(in, out), &uniform);
    trama_value *b = trama_parameter(program, bias, o->dtype, TRAMA_SHAPE(out), NULL);
    shard_along(w, o->mesh, "mp", by_row ? "S(0)" : last ? "R" : "S(1)");
    return trama_add(trama_matmul(h, as(w, o->compute)), as(b, o->compute));
}

/* Of a training on so many samples. */
static int64_t steps_of(const options *o, int64_t samples)
{
    return o->steps ? o->steps : o->epochs * ((samples + o->batch - 1) / o->batch);
}

static model build(const options *o, int64_t pixels, int64_t steps)
{
    model m = {.program = trama_program_create()};
    m.x = trama_input(m.program, "x", o->dtype, TRAMA_SHAPE(TRAMA_ANY, pixels));
    m.y = trama_input(m.program, "y", TRAMA_I64, TRAMA_SHAPE(TRAMA_ANY));
    shard_along(m.x, o->mesh, "dp", "S(0)");

    trama_value *z = as(m.x, o->compute);
    for (int i = 0; i <= o->n_hidden; i++) {
        int64_t in = i ? o->hidden[i - 1] : pixels, out = i < o->n_hidden ? o->hidden[i] : CLASSES;
        z = layer(o, m.program, i, in, out, i ? trama_relu(z) : z);
    }
    z = as(z, o->dtype);
    m.loss = trama_cross_entropy(z, m.y);
    m.accuracy = trama_mean(trama_cast(trama_equal(trama_argmax(z, 1), m.y), o->dtype));

    trama_optimizer optimizer = optimizer_chosen(&o->optimizer, (steps + o->merge - 1) / o->merge);
    m.train = trama_target_create(m.program, "train", trama_minimize(m.loss, &optimizer), m.loss);
    trama_gradient_merge(m.train, o->merge, TRAMA_MERGE_AVG);
    m.eval = trama_target_create(m.program, "eval", m.accuracy);
    return m;
}

/* ---- Running it ---- */

typedef struct job {
    trama_context *context;
    const options *o;
    const model *m;
    trama_executable *executable;
    bool speaks; /* rank 0 */
} job;

/* Uses the result of one run over so many samples. */
typedef void (*use_function)(void *user, double result, int64_t samples);

/* One target's runs over batches of a data set, and their results on the way. */
typedef struct stream {
    const job *job;
    const dataset *data;
    const trama_target *target;
    const trama_value *result; /* a scalar */
    use_function use;
    void *user;
    bool saves;          /* checkpoints */
    trama_feeder *files; /* of the batches; NULL: they are gathered in memory */
    sampler order;
    int64_t *index, *labels;
    void *images;
    int n;
    struct {
        trama_reading *reading;
        int64_t samples;
    } waiting[IN_FLIGHT]; /* oldest first */
} stream;

static double wait_scalar(trama_reading **reading, trama_dtype dtype)
{
    float single;
    double wide;
    if (dtype == TRAMA_F64) {
        must(trama_read_wait(reading, &wide, sizeof wide));
        return wide;
    }
    must(trama_read_wait(reading, &single, sizeof single));
    return single;
}

static void take_oldest(stream *s)
{
    double result = wait_scalar(&s->waiting[0].reading, s->job->o->dtype);
    s->use(s->user, result, s->waiting[0].samples);
    s->n--;
    memmove(s->waiting, s->waiting + 1, (size_t)s->n * sizeof *s->waiting);
}

/* Widens [*first, *end) to the rows of n samples that this rank has of an input. */
static void add_local_rows(const stream *s, const trama_value *input, trama_shape shape, int64_t *first, int64_t *end)
{
    int boxes;
    must(trama_feed_local_count(s->job->executable, input, shape, &boxes));
    for (int i = 0; i < boxes; i++) {
        int64_t offset[2], extent[2];
        must(trama_feed_local_box(s->job->executable, input, shape, i, offset, extent));
        *first = offset[0] < *first ? offset[0] : *first;
        *end = offset[0] + extent[0] > *end ? offset[0] + extent[0] : *end;
    }
}

/* Gathers the rank's part of the next batch while the runs before it are under way, then feeds it; returns the size of
 * the batch. */
static int64_t feed_batch(stream *s)
{
    const job *j = s->job;
    int64_t n;
    if (s->files) {
        if (s->n == IN_FLIGHT)
            take_oldest(s);
        must(trama_feeder_next(s->files, &n));
        return n;
    }
    n = sampler_next(&s->order, s->index);
    const trama_shape images = TRAMA_SHAPE(n, dataset_pixels(s->data)), labels = TRAMA_SHAPE(n);
    int64_t first = n, end = 0;
    add_local_rows(s, j->m->x, images, &first, &end);
    add_local_rows(s, j->m->y, labels, &first, &end);
    if (first < end)
        dataset_gather(s->data, s->index, first, end - first, j->o->dtype, s->images, s->labels);
    if (s->n == IN_FLIGHT)
        take_oldest(s);
    must(trama_feed(j->executable, j->m->x, s->images, images));
    must(trama_feed(j->executable, j->m->y, s->labels, labels));
    return n;
}

/* Starts to read the result of each run, but waits for it only IN_FLIGHT runs later: reading must not empty the
 * machine. The batches of the first `done` runs are passed over; files are where the checkpoint was. */
static void run_batches(stream *s, int64_t done, int64_t runs)
{
    for (int64_t run = 0; run < done && !s->files; run++)
        sampler_next(&s->order, s->index);
    for (int64_t run = done; run < runs; run++) {
        int64_t samples = feed_batch(s);
        must(trama_run(s->job->executable, s->target));
        must(trama_read_start(s->job->executable, s->result, &s->waiting[s->n].reading));
        s->waiting[s->n++].samples = samples;
        if (s->saves)
            checkpoint_after(s->job->context, s->job->executable, &s->job->o->checkpoint, run + 1);
    }
    while (s->n)
        take_oldest(s);
}

static void begin_stream(stream *s, sampler_order order)
{
    const options *o = s->job->o;
    s->order = sampler_begin(dataset_samples(s->data), o->batch, order, o->seed);
    s->index = must_allocate(o->batch, sizeof *s->index);
    s->labels = must_allocate(o->batch, sizeof *s->labels);
    s->images = must_allocate(o->batch * dataset_pixels(s->data), trama_dtype_size(o->dtype));
}

static void end_stream(stream *s)
{
    sampler_end(&s->order);
    free(s->index);
    free(s->labels);
    free(s->images);
}

/* ---- Training ---- */

typedef struct training {
    progress shown;
    FILE *log;
    int64_t steps, samples;    /* done */
    double loss, begun, ended; /* of the last step done; clock_seconds() */
} training;

static void step_done(void *user, double loss, int64_t samples)
{
    training *t = user;
    double now = clock_seconds();
    if (t->log)
        fprintf(t->log, "%lld,%.17g,%.9f\n", (long long)t->steps, loss, now - t->ended);
    t->loss = loss;
    t->ended = now;
    t->samples += samples;
    progress_tell(&t->shown, ++t->steps, t->samples, loss);
}

static FILE *open_log(const job *j)
{
    const char *path = j->o->log;
    if (!path || !j->speaks)
        return NULL;
    FILE *log = fopen(path, "w");
    if (!log)
        fail("--log %s: %s", path, strerror(errno));
    fprintf(log, "step,loss,seconds\n");
    return log;
}

static void close_log(const job *j, FILE *log)
{
    if (!log)
        return;
    if (!close_written(log))
        fail("--log %s: it could not be written: %s", j->o->log, strerror(errno));
}

static trama_feeder *open_files(const job *j)
{
    const options *o = j->o;
    char path[4096];
    trama_feeder *files = NULL;
    if (!o->stream)
        return NULL;
    must(trama_feeder_create(
        j->executable, "train",
        &(trama_feeder_options){.batch = o->batch, .seed = o->seed, .shuffle = o->order == SAMPLER_SHUFFLED}, &files));
    must(trama_feeder_add(files, j->m->x, dataset_file(o->stream, "images", path, sizeof path), NULL));
    must(trama_feeder_add(files, j->m->y, dataset_file(o->stream, "labels", path, sizeof path), NULL));
    return files;
}

static training train(const job *j, const dataset *data)
{
    training t = {.log = open_log(j)};
    stream s = {.job = j,
                .data = data,
                .target = j->m->train,
                .result = j->m->loss,
                .use = step_done,
                .user = &t,
                .saves = true,
                .files = open_files(j)};
    begin_stream(&s, j->o->order);
    int64_t steps = steps_of(j->o, dataset_samples(data));
    t.steps = checkpoint_restart(j->executable, &j->o->checkpoint, steps);
    t.shown = progress_begin(j->speaks, steps);
    t.begun = t.ended = clock_seconds();
    run_batches(&s, t.steps, steps);
    checkpoint_end(j->context, j->executable, &j->o->checkpoint, steps);
    must(trama_flush(j->executable, j->m->train)); /* a cycle that is not full */
    end_stream(&s);
    trama_feeder_destroy(&s.files);
    close_log(j, t.log);
    return t;
}

/* ---- Testing ---- */

static void batch_tested(void *user, double accuracy, int64_t samples)
{
    *(double *)user += accuracy * (double)samples;
}

/* The share of the data set that the network gets right. */
static double test(const job *j, const dataset *data)
{
    double right = 0;
    stream s = {
        .job = j, .data = data, .target = j->m->eval, .result = j->m->accuracy, .use = batch_tested, .user = &right};
    begin_stream(&s, SAMPLER_IN_ORDER);
    run_batches(&s, 0, sampler_batches(&s.order));
    end_stream(&s);
    return right / (double)dataset_samples(data);
}

/* ---- The program ---- */

/* A plan is one for the extents fed last. */
static void feed_once(const job *j, const dataset *data)
{
    stream s = {.job = j, .data = data};
    begin_stream(&s, j->o->order);
    feed_batch(&s);
    end_stream(&s);
}

/* Seconds in which a process gathers its rows of a batch. */
static double gathering_seconds(const job *j, const dataset *data)
{
    enum { BATCHES = 20 };
    const options *o = j->o;
    int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM];
    stream s = {.job = j, .data = data};
    double seconds = 0;
    if (o->stream)
        return 0;
    begin_stream(&s, o->order);
    must(trama_feed_local_box(j->executable, j->m->x, TRAMA_SHAPE(o->batch, dataset_pixels(data)), 0, offset, extent));
    for (int i = 0; i < BATCHES; i++) {
        const int64_t n = sampler_next(&s.order, s.index), rows = n < extent[0] ? n : extent[0];
        const double begun = clock_seconds();
        dataset_gather(data, s.index, 0, rows, o->dtype, s.images, s.labels);
        seconds += clock_seconds() - begun;
    }
    end_stream(&s);
    return seconds / BATCHES;
}

static void train_and_test(const job *j, const dataset *samples, const dataset *tests)
{
    training t = train(j, samples);
    double accuracy = test(j, tests), seconds = t.ended - t.begun;
    if (j->speaks)
        printf("test accuracy %.4f, final loss %.6g, %.2f s, %.0f samples/s\n", accuracy, t.loss, seconds,
               (double)t.samples / seconds);
}

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    const char *folder = dataset_folder(o.data);
    dataset samples = dataset_read(folder, "train", CLASSES), tests = dataset_read(folder, "t10k", CLASSES);
    if (dataset_pixels(&samples) != dataset_pixels(&tests))
        fail("%s: train images have %lld pixels, t10k images %lld", folder, (long long)dataset_pixels(&samples),
             (long long)dataset_pixels(&tests));

    model m = build(&o, dataset_pixels(&samples), steps_of(&o, dataset_samples(&samples)));
    trama_context *context = NULL;
    job j = {.o = &o, .m = &m};
    must(trama_start(NULL, &context));
    if (o.stream && trama_context_rank(context) == 0) /* the other ranks wait in trama_compile */
        dataset_write(&samples, o.stream, o.dtype);
    j.context = context;
    j.speaks = trama_context_rank(context) == 0;
    auto_choose(context, m.train, o.machine, o.batch);
    must(trama_compile(context, m.program, &j.executable));
    if (o.plan) {
        feed_once(&j, &samples);
        if (o.plan == PLAN_REHEARSAL)
            plan_rehearse(context, m.train,
                          (trama_rehearsal_options){.any = o.batch, .own_seconds = gathering_seconds(&j, &samples)});
        else
            must(plan_print(context, j.executable, m.train, o.plan, o.batch));
    } else {
        train_and_test(&j, &samples, &tests);
    }

    must(trama_executable_destroy(&j.executable));
    must(trama_stop(&context));
    trama_program_destroy(&m.program);
    trama_mesh_destroy(&o.mesh);
    dataset_free(&samples);
    dataset_free(&tests);
    return EXIT_SUCCESS;
}
