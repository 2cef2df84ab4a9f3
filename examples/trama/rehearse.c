/* SPDX-License-Identifier: Apache-2.0 */
/* trama rehearse: a model of any size on a described machine, planned for all its ranks and simulated. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "machine_file.h"
#include "models.h"
#include "must.h"
#include "progress.h"
#include "trace_rehearsed.h"

enum {
    KEY_MODEL = 256,
    KEY_LAYERS,
    KEY_HEADS,
    KEY_HIDDEN,
    KEY_SEQ,
    KEY_VOCAB,
    KEY_BATCH,
    KEY_N,
    KEY_MACHINE,
    KEY_PLAN,
    KEY_RANK,
    KEY_STEPS,
    KEY_TRACE,
    KEY_GRAPH,
    KEY_NO_STARVZ,
    KEY_SEARCH,
    KEY_AUTO,
    KEY_MEMORY
};

static const char *const models[] = {"mlp", "gpt", "cg", "heat"};

static const struct argp_option options[] = {
    {"model", KEY_MODEL, "NAME", 0, "mlp, gpt, cg or heat [gpt]", 0},
    {"mesh", 'm', "SPEC", 0,
     "the mesh, one process a rank; of mlp and gpt dp splits the batch, mp weights, and of gpt pp the layers [dp=2]",
     0},
    {"layers", KEY_LAYERS, "N", 0, "blocks of gpt, hidden layers of mlp [2]", 0},
    {"heads", KEY_HEADS, "N", 0, "heads of gpt [8]", 0},
    {"hidden", KEY_HIDDEN, "N,N", 0, "features of gpt; of mlp its hidden layers, or the size of all of them [512]", 0},
    {"seq", KEY_SEQ, "N", 0, "tokens of a sequence [128]", 0},
    {"vocab", KEY_VOCAB, "N", 0, "words of gpt [1000]", 0},
    {"batch", KEY_BATCH, "N", 0, "sequences or samples of each process along dp [1, and 128 of mlp]", 0},
    {"n", KEY_N, "N", 0, "rows of the matrix of cg, points along a side of heat [4096]", 0},
    {"machine", KEY_MACHINE, "FILE", 0,
     "the machine, as `trama calibrate` writes it; cores and gpus may be a topology of hwloc (cores node.xml, from "
     "`lstopo node.xml`); builtin: a node of 16 cores for each process, at 25 GB/s and 2 us [builtin]",
     0},
    {"auto", KEY_AUTO, "N", 0,
     "instead of --mesh: leave out the model's annotations, try the meshes of N processes, print a table, and rehearse "
     "the shortest run; a batch is then that of all processes",
     0},
    {"memory", KEY_MEMORY, "MIB", 0, "of --auto: MiB of buffers that a rank may have [no limit]", 0},
    {"search", KEY_SEARCH, "MIB", OPTION_ARG_OPTIONAL,
     "search for layouts that receive fewer bytes than those of the model; with MIB, among those by which a rank needs "
     "no more MiB of memory at a time",
     0},
    {"steps", KEY_STEPS, "N", 0, "runs of the model's step [1]", 0},
    {"plan-only", KEY_PLAN, NULL, 0, "plan one rank and simulate nothing; print the time of each phase", 0},
    {"rank", KEY_RANK, "N", 0, "that rank [0]", 0},
    {"trace", KEY_TRACE, "FOLDER", 0,
     "show the tasks and messages as trama trace shows those of a run, and write its files there", 0},
    {"graph", KEY_GRAPH, "FILE", 0,
     "write the steps of a run of the planned ranks there as text, with times and dependencies, for other simulators",
     0},
    {"no-starvz", KEY_NO_STARVZ, NULL, 0, "of --trace: do not run StarVZ", 0},
    {0}};

static const char doc[] =
    "Plans a training step, or an iteration, for every rank of a described machine, and simulates "
    "it by discrete events. Nothing runs.\v"
    "It prints the time of a step and its lower bounds, the share of idle workers, the hidden share of communication, "
    "messages and bytes, the memory of ranks, and the critical path by op.";

typedef struct order {
    int which;
    const char *mesh_text, *machine, *trace, *graph;
    model_sizes sizes;
    int layers;
    bool search, no_starvz;
    int processes;  /* of the mesh; with --auto the mesh is NULL */
    int64_t memory; /* MiB, of --auto; 0: no limit */
    int64_t within; /* MiB, of --search; 0: any */
    trama_rehearsal_options how;
    trama_mesh *mesh;
} order;

static void understand(struct argp_state *state, order *o)
{
    if (!o->processes) {
        o->mesh = argument_mesh(state, "--mesh", o->mesh_text, 0, NULL);
        o->processes = trama_mesh_size(o->mesh);
    }
    decoder_sizes *gpt = &o->sizes.gpt;
    gpt->layers = o->layers;
    gpt->features = o->sizes.hidden[0];
    if (!gpt->sequences)
        gpt->sequences = o->which == MODEL_MLP ? 128 : 1;
    if (o->which == MODEL_GPT && gpt->features % gpt->heads)
        argp_error(state, "--heads '%lld': they do not divide --hidden '%lld'", (long long)gpt->heads,
                   (long long)gpt->features);
    if (o->mesh && o->memory)
        argp_error(state, "--memory '%lld': it limits the choice of --auto", (long long)o->memory);
    if (!o->mesh && o->search)
        argp_error(state, "--auto '%d': it searches itself; leave out --search", o->processes);
    if (!o->mesh && o->how.plan_only)
        argp_error(state, "--auto '%d': it compares times, and with --plan-only there are none", o->processes);
    if (o->which == MODEL_GPT && decoder_stages(o->mesh) > DECODER_MOST_STAGES)
        argp_error(state, "--mesh '%s': pp is at most %d", o->mesh_text, DECODER_MOST_STAGES);
    if (o->sizes.n_hidden == 1)
        for (o->sizes.n_hidden = o->layers < MODEL_MOST_LAYERS ? o->layers : MODEL_MOST_LAYERS; --o->layers > 0;)
            if (o->layers < MODEL_MOST_LAYERS)
                o->sizes.hidden[o->layers] = o->sizes.hidden[0];
    if (o->which >= MODEL_CG && trama_mesh_ndim(o->mesh) > 2)
        argp_error(state, "--mesh '%s': %s takes one or two axes", o->mesh_text, models[o->which]);
    if (o->how.rank >= o->processes)
        argp_error(state, "--rank '%d': the mesh has %d processes", o->how.rank, o->processes);
    if (o->trace && (o->how.plan_only || !*o->trace))
        argp_error(state, "--trace '%s': %s", o->trace,
                   *o->trace ? "with --plan-only there is nothing to show" : "takes the name of a folder");
}

static int size_of(const struct argp_state *state, const char *option, const char *text)
{
    return (int)argument_integer(state, option, text, 1, 1 << 30);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    order *o = state->input;
    switch (key) {
    case KEY_MODEL:
        o->which = argument_word(state, "--model", text, N_MODELS, models);
        return 0;
    case 'm':
        o->mesh_text = text;
        return 0;
    case KEY_LAYERS:
        o->layers = (int)argument_integer(state, "--layers", text, 1, 100000);
        return 0;
    case KEY_HEADS:
        o->sizes.gpt.heads = size_of(state, "--heads", text);
        return 0;
    case KEY_HIDDEN:
        o->sizes.n_hidden = argument_list(state, "--hidden", text, 1, 1 << 30, MODEL_MOST_LAYERS, o->sizes.hidden);
        return 0;
    case KEY_SEQ:
        o->sizes.gpt.length = size_of(state, "--seq", text);
        return 0;
    case KEY_VOCAB:
        o->sizes.gpt.words = size_of(state, "--vocab", text);
        return 0;
    case KEY_BATCH:
        o->sizes.gpt.sequences = (int)argument_integer(state, "--batch", text, 1, 1 << 20);
        return 0;
    case KEY_N:
        o->sizes.n = argument_integer(state, "--n", text, 3, 1 << 24);
        return 0;
    case KEY_MACHINE:
        o->machine = text;
        return 0;
    case KEY_STEPS:
        o->how.runs = (int)argument_integer(state, "--steps", text, 1, 10000);
        return 0;
    case KEY_PLAN:
        o->how.plan_only = true;
        return 0;
    case KEY_AUTO:
        o->processes = (int)argument_integer(state, "--auto", text, 1, 1 << 20);
        return 0;
    case KEY_MEMORY:
        o->memory = argument_integer(state, "--memory", text, 1, 1 << 30);
        return 0;
    case KEY_SEARCH:
        o->search = true;
        o->within = text ? argument_integer(state, "--search", text, 1, 1 << 30) : 0;
        return 0;
    case KEY_TRACE:
        o->trace = text;
        return 0;
    case KEY_NO_STARVZ:
        o->no_starvz = true;
        return 0;
    case KEY_GRAPH:
        o->graph = text;
        return 0;
    case KEY_RANK:
        o->how.rank = (int)argument_integer(state, "--rank", text, 0, 1 << 20);
        return 0;
    case ARGP_KEY_SUCCESS:
        understand(state, o);
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

/* ---- Phases ---- */

enum { RECORD, GRADIENTS, COMPLETION, MAPPING, PLANNING, SIMULATION, N_PHASES };

typedef struct stopwatch {
    double at, seconds[N_PHASES];
} stopwatch;

/* Looks at a rehearsal. */
typedef struct observer {
    stopwatch watch;
    rehearsed *trace; /* with --trace */
    FILE *graph;      /* with --graph */
} observer;

static void stop(stopwatch *w, int phase)
{
    const double now = clock_seconds();
    w->seconds[phase] += now - w->at;
    w->at = now;
}

static void tell(void *closure, trama_rehearsal_phase phase, int made, int ranks)
{
    (void)made;
    (void)ranks;
    stop(&((observer *)closure)->watch, COMPLETION + (int)phase);
}

static void take_event(void *closure, const trama_rehearsed *event)
{
    rehearsed_take_event(((observer *)closure)->trace, event);
}

static void print_step(FILE *out, const trama_rehearsed_step *s)
{
    fprintf(out, "%s %d %d %d %d %.9g %d %lld %lld %s:",
            s->orders     ? "order"
            : s->peer < 0 ? "task"
            : s->sends    ? "send"
                          : "receive",
            s->rank, s->step, s->priority, s->worker, s->seconds, s->peer, (long long)s->tag, (long long)s->bytes,
            s->peer < 0 ? s->name : "message");
    for (int i = 0; i < s->n_next; i++)
        fprintf(out, " %d", s->next[i]);
    putc('\n', out);
}

static void take_step(void *closure, const trama_rehearsed_step *s)
{
    const observer *by = closure;
    if (by->graph)
        print_step(by->graph, s);
    if (by->trace)
        rehearsed_take_step(by->trace, s);
}

static FILE *open_graph(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail("--graph '%s': %s", path, strerror(errno));
    fputs("# task|order|send|receive RANK STEP PRIORITY WORKER SECONDS PEER TAG BYTES NAME: STEPS THAT WAIT FOR IT\n"
          "# of one run, in the order of submission; worker -1: any; an order takes no worker, and no time; ends of a "
          "message match by ranks and tag; the last line is: # end\n",
          file);
    return file;
}

static void close_graph(FILE *file, const char *path)
{
    fputs("# end\n", file);
    if (!close_written(file))
        fail("--graph '%s': %s", path, strerror(errno));
}

static void print_phases(const stopwatch *w, bool plan_only)
{
    static const char *const names[] = {"record", "gradients", "completion", "mapping", "plan", "simulation"};
    double all = 0;
    for (int i = 0; i < N_PHASES - plan_only; i++) {
        printf("%s %.3f s, ", names[i], w->seconds[i]);
        all += w->seconds[i];
    }
    printf("together %.3f s\n", all);
}

/* ---- The command ---- */

static trama_status rehearse(order *o, observer *by, const model *m, trama_rehearsal **made)
{
    trama_cluster *cluster = machine_read(o->machine, o->processes);
    if (!o->mesh)
        choose_layouts(m->target, cluster,
                       (trama_auto_options){.processes = o->processes, .memory_bytes = o->memory << 20}, true);
    by->graph = o->graph ? open_graph(o->graph) : NULL;
    o->how.size = sizeof o->how;
    o->how.tell = tell;
    o->how.event = o->trace ? take_event : NULL;
    o->how.step = by->graph || by->trace ? take_step : NULL;
    o->how.closure = by;
    by->watch.at = clock_seconds();
    const trama_status status = trama_rehearse(m->target, cluster, &o->how, made);
    trama_cluster_destroy(&cluster);
    return status;
}

int command_rehearse(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = doc};
    order o = {.which = MODEL_GPT,
               .mesh_text = "dp=2",
               .machine = "builtin",
               .layers = 2,
               .sizes = {.gpt = {.heads = 8, .length = 128, .words = 1000}, .n_hidden = 1, .hidden = {512}, .n = 4096}};
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    observer by = {.watch = {.at = clock_seconds()}, .trace = o.trace ? rehearsed_new(o.processes, o.how.runs) : NULL};
    model m = model_record(o.which, o.mesh, &o.sizes);
    stop(&by.watch, RECORD);
    model_train(&m);
    stop(&by.watch, GRADIENTS);
    if (o.search)
        must(o.within ? trama_search_layouts_in_memory(m.program, o.within << 20) : trama_search_layouts(m.program));
    if (trama_program_status(m.program))
        fail("%s", trama_program_error(m.program));
    trama_rehearsal *made = NULL;
    char *text;
    must(rehearse(&o, &by, &m, &made));
    must(trama_rehearsal_text(made, &text));
    print_phases(&by.watch, o.how.plan_only);
    fputs(text, stdout);
    if (o.graph)
        close_graph(by.graph, o.graph);
    if (o.trace)
        rehearsed_show(by.trace, o.trace, o.no_starvz);
    rehearsed_free(by.trace);
    trama_text_free(&text);
    trama_rehearsal_destroy(&made);
    model_free(&m);
    return EXIT_SUCCESS;
}
