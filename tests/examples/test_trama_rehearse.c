/* SPDX-License-Identifier: Apache-2.0 */
/* The command trama rehearse, and --rehearse of the examples: figures worked out by hand, wrong orders. */
#include "programs.h"
#include "suite.h"

#include <sys/resource.h>

static const char *rehearse(const char *arguments)
{
    return text_of(run("./trama rehearse %s", arguments));
}

static void expect(const char *text, const char *part)
{
    ck_assert_msg(contains(text, part), "no '%s' in\n%s", part, text);
}

static const char *machine_of(const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/machine", scratch);
    write_file("machine", strlen(text), (const unsigned char *)text);
    return path;
}

/* A rank alone: three products forward, five backward, of 2 m n k flop each, at 1 Gflop/s; nothing else takes time, but
 * for the updates of weights, which are one task with the products before them: less than 1 %. */
START_TEST(a_perceptron_takes_the_time_of_its_products)
{
    char arguments[512];
    const char *file = machine_of("kind n\n core memory 100000TB/s\n core f32 1000000Tflop/s\n op matmul f32 1Gflop/s\n"
                                  " task 0s\n feed 100000TB/s\n nodes 1 n\n");
    snprintf(arguments, sizeof arguments, "--model mlp --hidden 64,32 --batch 100 --mesh 1 --machine %s", file);
    const double flops = 2.0 * 100 * (2 * 784 * 64 + 3 * 64 * 32 + 3 * 32 * 10);
    const char *text = rehearse(arguments), *at = strstr(text, "time of a run: ");
    ck_assert_msg(at != NULL, "%s", text);
    const double ms = strtod(at + strlen("time of a run: "), NULL);
    ck_assert_msg(ms > 0.999 * flops / 1e6 && ms < 1.01 * flops / 1e6, "%g ms, not %g", ms, flops / 1e6);
    expect(text, "1 ranks, 1 runs\n");
    expect(text, "messages: 0, of 0 MB\n");
}
END_TEST

START_TEST(all_models_are_rehearsed_on_meshes)
{
    static const char *const orders[] = {"--model mlp --mesh dp=2,mp=2 --hidden 64 --layers 3",
                                         "--model gpt --mesh dp=2,mp=2 --hidden 64 --heads 4 --seq 16",
                                         "--model gpt --mesh dp=2,pp=2 --hidden 64 --heads 4 --seq 16 --layers 4",
                                         "--model cg --mesh 2,2 --n 100", "--model heat --mesh 2,3 --n 100 --steps 7"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const char *text = rehearse(orders[i]);
        expect(text, "time of a run: ");
        expect(text, "workers idle: ");
        expect(text, "critical path: ");
        expect(text, i < 4 ? "1 runs\n" : "6 ranks, 7 runs\n");
    }
}
END_TEST

static int count(const char *text, const char *part)
{
    int n = 0;
    while ((text = strstr(text, part))) {
        text += strlen(part);
        n++;
    }
    return n;
}

/* Each line of paje.trace has the columns of its definition. */
static const char check_paje[] = "awk '$1 == \"%%EventDef\" { event = $3; next } $1 == \"%%EndEventDef\" { next }"
                                 " $1 == \"%%\" { columns[event]++; next }"
                                 " { n++; line = $0; gsub(/\"[^\"]*\"/, \"x\", line);"
                                 " if (split(line, part, \" \") != columns[$1] + 1) print }"
                                 " END { print (n > 0) }' %s/drawn/paje.trace";

/* No task of tasks.rec begins before the tasks that it depends on have ended, over StarPU's own jobs too; each job that
 * something depends on is there. */
static const char check_records[] =
    "awk -v RS= '{ delete f; for (i = 1; i <= NF; i++) if ($i ~ /:$/) f[$i] = $(i + 1);"
    " id = f[\"JobId:\"]; there[id] = 1; begin[id] = f[\"StartTime:\"]; end[id] = f[\"EndTime:\"];"
    " split($0, half, \"DependsOn:\"); split(half[2], line, \"\\n\"); needs[id] = line[1] }"
    " END { for (id in needs) { n = split(needs[id], of, \" \");"
    " for (i = 1; i <= n; i++) { all++; if (!(of[i] in there)) print id \" needs \" of[i];"
    " if (begin[id] != \"\" && end[of[i]] > begin[id] + 1e-6) print id \" begins before the end of \" of[i] } }"
    " print (all > 0) }' %s/drawn/tasks.rec";

/* Each worker is as long in states of tasks as its tasks take. */
static const char check_states[] =
    "awk 'FILENAME ~ /paje/ { if ($1 == 10 && $4 == \"WS\") { if ($3 in since) busy[$3] += $2 - since[$3]; delete "
    "since[$3];"
    " if ($5 != \"I\") since[$3] = $2 } next }"
    " $1 == \"WorkerId:\" { worker = $2 } $1 == \"StartTime:\" { begin = $2 } $1 == \"EndTime:\" { end = $2 }"
    " $1 == \"JobId:\" { split($2, part, \"_\") } $1 == \"GFlop:\" { took[part[1] \"_w\" worker] += end - begin }"
    " END { for (w in took) { n++; if ((busy[w] - took[w]) ^ 2 > 1e-6) print w, busy[w], took[w] } print (n > 0) }'"
    " %s/drawn/paje.trace %s/drawn/tasks.rec";

static int lines_with(const char *file, const char *part)
{
    return atoi(text_of(run("grep -c '%s' %s/drawn/%s || true", part, scratch, file)));
}

/* trace.json has a slice for each task, in the microseconds of its viewers, and an arrow for each message. */
START_TEST(a_rehearsal_is_shown_as_a_run_is)
{
    char arguments[300], tasks[64];
    snprintf(arguments, sizeof arguments, "--model mlp --mesh dp=2 --hidden 64 --batch 32 --steps 3 --trace %s/drawn",
             scratch);
    char *said = strdup(rehearse(arguments));
    expect(said, "drawn: paje.trace, tasks.rec, data.rec, comms.rec, dag.dot, starvz.yaml, timeline.svg, trace.json\n");
    const char *at = strstr(said, "steps: ");
    int steps, messages;
    ck_assert_msg(at && sscanf(at, "steps: %d; messages: %d", &steps, &messages) == 2, "%s", said);
    ck_assert_int_gt(messages, 0);
    const int orders = lines_with("tasks.rec", "^Name: reshard.order$");
    ck_assert_int_gt(orders, 0);
    snprintf(tasks, sizeof tasks, " %d tasks, %d messages\n", 3 * (steps - 2 * messages) - orders, 3 * messages);
    expect(said, tasks);
    expect(said, "critical path");
    ck_assert_int_gt(lines_with("data.rec", "^Name: .*matmul"), 0); /* gradients that are sent */
    ck_assert_int_gt(lines_with("trace.json", "matmul[0-9_.a-z]* to rank 1"), 0);
    ck_assert_msg(count(said, ": for ") > 0, "no wait has a cause: %s", said);
    ck_assert_int_gt(lines_with("trace.json", "\"name\":\"matmul\""), 0);
    ck_assert_int_gt(lines_with("trace.json", "\"name\":\"update.sgd\""), 0);
    ck_assert_int_gt(lines_with("trace.json", "\"name\":\"dependency\""), 0);
    ck_assert_int_ge(lines_with("trace.json", "\"bytes\""), 3 * messages);
    ck_assert_int_gt(lines_with("timeline.svg", "rank 0, worker 0"), 0);
    ck_assert_int_gt(lines_with("timeline.svg", "rank 1, worker 0"), 0);
    ck_assert_int_gt(lines_with("timeline.svg", "step 1"), 0);
    ck_assert_str_eq(text_of(run(check_paje, scratch)), "1\n");
    ck_assert_str_eq(text_of(run(check_records, scratch)), "1\n");
    free(said);
    run_wrong("trama rehearse", &(wrong_use){" --trace ''", "--trace", "folder"});
    run_wrong("trama rehearse", &(wrong_use){" --trace x --plan-only", "--trace", "--plan-only"});
    run_wrong("trama rehearse", &(wrong_use){" --hidden 8 --layers 1 --trace /dev/null/x", "/dev/null/x", "folder"});
}
END_TEST

/* Orders of 4 processes on 3 ranks; messages without length, which are read in the sender's memory. */
START_TEST(orders_and_messages_without_length_are_shown)
{
    static const struct {
        int ranks;
        const char *mesh;
        bool orders; /* else messages without length */
    } cases[] = {{3, "dp=4", true}, {4, "mp=4", false}};
    for (int i = 0; i < 2; i++) {
        char machine[300], arguments[700], ranks[40];
        snprintf(machine, sizeof machine,
                 "kind n\n cores 6\n core f32 10Gflop/s\n core memory 10GB/s\n task 0s\n message 0s\n ranks %d\n"
                 "local 10GB/s 0s\n nodes 1 n\n",
                 cases[i].ranks);
        snprintf(arguments, sizeof arguments,
                 "--mesh %s --hidden 256 --vocab 50 --seq 256 --layers 1 --machine %s --trace %s/drawn", cases[i].mesh,
                 machine_of(machine), scratch);
        snprintf(ranks, sizeof ranks, "trama rehearse: %d ranks", cases[i].ranks);
        expect(rehearse(arguments), ranks);
        ck_assert((lines_with("tasks.rec", "^Name: reshard.order$") > 0) == cases[i].orders);
        const char *brief = "awk '/^SendTime/ { at = $2 } /^RecvTime/ { n += $2 == at } END { print n + 0 }' "
                            "%s/drawn/comms.rec";
        ck_assert((atoi(text_of(run(brief, scratch))) > 0) != cases[i].orders);
        ck_assert_str_eq(text_of(run(check_states, scratch, scratch)), "1\n");
        ck_assert_str_eq(text_of(run(check_paje, scratch)), "1\n");
        ck_assert_str_eq(text_of(run(check_records, scratch)), "1\n");
        ck_assert_int_eq(lines_with("paje.trace", cases[i].ranks == 3 ? "3_program" : "4_program"), 0);
        const char *fast = "awk '$1 == 13 && $4 ~ /mpi/ && $5 > 40000' %s/drawn/paje.trace | wc -l"; /* 4 messages */
        ck_assert_int_eq(atoi(text_of(run(fast, scratch))), 0);
    }
}
END_TEST

START_TEST(workers_are_named_by_their_kind)
{
    static const char *const kinds[] = {"cores 2", "gpus 2\n gpu f32 10Tflop/s"};
    for (int gpus = 0; gpus < 2; gpus++) {
        char machine[100], arguments[700];
        snprintf(machine, sizeof machine, "kind n\n %s\n nodes 1 n\n", kinds[gpus]);
        snprintf(arguments, sizeof arguments, "--model mlp --mesh dp=2 --machine %s --trace %s/drawn",
                 machine_of(machine), scratch);
        expect(rehearse(arguments), gpus ? "rank 0 place 1, 1 worker" : "rank 0 place 0, 2 workers");
        for (int worker = 0; worker < 2; worker++)
            ck_assert_int_eq(lines_with("paje.trace", worker ? "0_CUDA1" : "0_CUDA0"), gpus);
        ck_assert_int_eq(lines_with("paje.trace", "0_CPU[01]"), gpus ? 0 : 2);
        ck_assert_str_eq(text_of(run(check_paje, scratch)), "1\n");
    }
}
END_TEST

/* A line for each step; the ends of messages fit; each step that waits is one of the rank. */
START_TEST(the_steps_of_all_ranks_are_written_for_others)
{
    char arguments[300], check[1000];
    snprintf(arguments, sizeof arguments, "--model mlp --mesh dp=2 --hidden 64 --batch 32 --graph %s/graph", scratch);
    char *said = strdup(rehearse(arguments));
    int steps = 0, messages = 0;
    ck_assert(sscanf(strstr(said, "steps: "), "steps: %d; messages: %d", &steps, &messages) == 2 && messages > 0);
    snprintf(check, sizeof check,
             "awk '$1 == \"#\" { next } { n++; last[$2] = $3 }"
             " $1 == \"order\" { orders++; if ($5 != -1 || $6 != 0) bad++ }"
             " $1 == \"send\" { m++; ends[$2 \" \" $7 \" \" $8 \" \" $9]++ }"
             " $1 == \"receive\" { ends[$7 \" \" $2 \" \" $8 \" \" $9]-- }"
             " { for (i = 11; i <= NF; i++) if ($i > most[$2]) most[$2] = $i }"
             " END { for (e in ends) if (ends[e]) bad++; for (r in most) if (most[r] > last[r]) bad++;"
             " print n, m, (orders > 0), bad + 0 }' %s/graph",
             scratch);
    char expected[64];
    snprintf(expected, sizeof expected, "%d %d 1 0\n", steps, messages);
    ck_assert_str_eq(text_of(run("%s", check)), expected);
    free(said);
    run_wrong("trama rehearse", &(wrong_use){" --graph ''", "--graph", "No such file"});
    run_wrong("trama rehearse", &(wrong_use){" --graph /dev/null/x", "--graph '/dev/null/x'", "Not a directory"});
    run_wrong("trama rehearse", &(wrong_use){" --hidden 8 --layers 1 --graph /dev/full", "/dev/full", "No space"});
}
END_TEST

/* A node of 2 packages with 3 cores, of 2 threads each, and two cards, of which one has two devices. */
static const char node_xml[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
    "version=\"2.0\">\n"
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3f\" complete_cpuset=\"0x3f\" allowed_cpuset=\"0x3f\" "
    "nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
    "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3f\" complete_cpuset=\"0x3f\" nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1073741824\"/>\n%s%s</object>\n</topology>\n";

static void write_node(void)
{
    char cores[4096] = "", xml[8192];
    for (int i = 0; i < 3; i++)
        sprintf(cores + strlen(cores),
                "<object type=\"Core\" os_index=\"%d\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" nodeset=\"0x1\" "
                "complete_nodeset=\"0x1\" gp_index=\"%d\"><object type=\"PU\" os_index=\"%d\" cpuset=\"0x%x\" "
                "complete_cpuset=\"0x%x\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"%d\"/><object "
                "type=\"PU\" os_index=\"%d\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" nodeset=\"0x1\" "
                "complete_nodeset=\"0x1\" gp_index=\"%d\"/></object>\n",
                i, 3 << 2 * i, 3 << 2 * i, 10 + i, 2 * i, 1 << 2 * i, 1 << 2 * i, 20 + 2 * i, 2 * i + 1, 2 << 2 * i,
                2 << 2 * i, 21 + 2 * i);
    static const char cards[] =
        "<object type=\"Bridge\" gp_index=\"40\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-04]\">\n"
        "<object type=\"PCIDev\" gp_index=\"41\" pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] "
        "a1\" "
        "pci_link_speed=\"0.0\"><object type=\"OSDev\" gp_index=\"42\" name=\"cuda0\" subtype=\"CUDA\" "
        "osdev_type=\"5\"/>"
        "<object type=\"OSDev\" gp_index=\"43\" name=\"nvml0\" subtype=\"NVML\" osdev_type=\"1\"/></object>\n"
        "<object type=\"PCIDev\" gp_index=\"44\" pci_busid=\"0000:02:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] "
        "a1\" "
        "pci_link_speed=\"0.0\"><object type=\"OSDev\" gp_index=\"45\" name=\"cuda1\" subtype=\"CUDA\" "
        "osdev_type=\"5\"/></object>\n"
        "<object type=\"PCIDev\" gp_index=\"46\" pci_busid=\"0000:03:00.0\" pci_type=\"0200 [8086:1521] [0000:0000] "
        "01\" "
        "pci_link_speed=\"0.0\"><object type=\"OSDev\" gp_index=\"47\" name=\"eth0\" osdev_type=\"2\"/></object>\n"
        "</object>\n";
    const int n = snprintf(xml, sizeof xml, node_xml, cores, cards);
    write_file("node.xml", (size_t)n, (const unsigned char *)xml);
}

/* The machine with a statement in place of %s, rehearsed by two ranks. */
static const char *rehearse_node(const char *statement)
{
    char machine[512], arguments[512];
    snprintf(machine, sizeof machine, "kind n\n %s\n ranks 2\nnodes 1 n\n", statement);
    snprintf(arguments, sizeof arguments, "--model mlp --mesh dp=2 --hidden 64 --batch 100 --machine %s",
             machine_of(machine));
    return rehearse(arguments);
}

START_TEST(a_topology_gives_cores_and_gpus)
{
    char by_number[8192];
    write_node();
    snprintf(by_number, sizeof by_number, "%s", strstr(rehearse_node("cores 3"), "2 ranks"));
    expect(rehearse_node("cores node.xml"), by_number);
    snprintf(by_number, sizeof by_number, "%s", strstr(rehearse_node("cores 4\n gpus 2"), "2 ranks"));
    ck_assert_str_ne(by_number, strstr(rehearse_node("cores 3"), "2 ranks"));
    expect(rehearse_node("cores 4\n gpus node.xml"), by_number);
}
END_TEST

START_TEST(a_topology_that_cannot_be_read_is_named)
{
    char machine[256];
    snprintf(machine, sizeof machine, "kind n\n cores none.xml\nnodes 1 n\n");
    const outcome *o = run("./trama rehearse --model mlp --mesh 1 --machine %s", machine_of(machine));
    ck_assert_int_eq(o->status, 1);
    expect(o->text, "line 2: hwloc cannot read '");
    expect(o->text, "none.xml': write it with `lstopo ");
    write_node();
    snprintf(machine, sizeof machine, "kind n\n cores node.xml 5\nnodes 1 n\n");
    o = run("./trama rehearse --model mlp --mesh 1 --machine %s", machine_of(machine));
    ck_assert_int_eq(o->status, 1);
    expect(o->text, "line 2");
}
END_TEST

START_TEST(a_rank_is_planned_alone)
{
    const char *text = rehearse("--model gpt --mesh dp=8,mp=8 --hidden 64 --heads 8 --seq 16 --plan-only --rank 63");
    expect(text, "record ");
    expect(text, "together ");
    expect(text, "64 ranks, planned\n");
    expect(text, " on rank 63");
    ck_assert(!contains(text, "critical path"));
}
END_TEST

START_TEST(wrong_orders_are_named)
{
    static const wrong_use wrong[] = {{" --model gtp", "--model", "gtp"},
                                      {" --mesh 2,,3", "--mesh", "2,,3"},
                                      {" --heads 3 --hidden 64", "--heads", "3"},
                                      {" --rank 2 --mesh dp=2", "--rank", "2"},
                                      {" --steps 0", "--steps", "0"},
                                      {" --model heat --mesh 2,2,2", "--mesh", "2,2,2"},
                                      {" --machine /nowhere/at/all", "machine", "/nowhere/at/all"},
                                      {" --mesh pp=65", "--mesh", "pp"},
                                      {" --auto 0", "--auto", "0"},
                                      {" --auto 2 --plan-only", "--auto", "plan-only"},
                                      {" --auto 2 --search", "--auto", "--search"},
                                      {" --auto 2 --memory 0", "--memory", "0"},
                                      {" --mesh 2 --memory 5", "--memory", "5"},
                                      {" --auto 2 --hidden 512 --memory 1", "memory_bytes", "1048576"},
                                      {" something", "something", "options"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        run_wrong("trama rehearse", &wrong[i]);
    char arguments[300];
    snprintf(arguments, sizeof arguments, " --machine %s", machine_of("kind n\ncors 3\nnodes 1 n\n"));
    run_wrong("trama rehearse", &(wrong_use){arguments, "line 2", "cors"});
}
END_TEST

START_TEST(examples_are_rehearsed)
{
    static const char *const programs[] = {"heat2d --mesh 2,2 --n 65",
                                           "cg --mesh 2,2 --n 100",
                                           "transformer --mesh mp=2",
                                           "hello_mesh",
                                           "own_op",
                                           "slow_input"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *text = text_of(run(WHOLE_STACKS "./%s --rehearse builtin", programs[i]));
        expect(text, "time of a run: ");
        expect(text, "critical path: ");
    }
    const outcome *o = run(WHOLE_STACKS "./own_rule --rehearse builtin");
    ck_assert(o->status == 1 && contains(o->text, "without trama_gradient_merge"));
    run_wrong("heat2d", &(wrong_use){" --rehearse ''", "--rehearse", "builtin"});
}
END_TEST

/* The most memory of all programs that ran so far. */
static double most_memory(void)
{
    struct rusage used;
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
    return 1024.0 * (double)used.ru_maxrss;
}

/* Four layers more take what the plan says: states, which are 201 MB, buffers and inputs. Neither number has what two
 * layers take besides, such as the program, its data and the buffers of the BLAS. */
START_TEST(a_run_takes_the_memory_that_its_rehearsal_states)
{
    static const char *const hidden[] = {"2048,2048", "2048,2048,2048,2048,2048,2048"};
    double taken[2], stated[2];
    if (suite_skips(suite_is_sanitized(), "bytes of a process, to which a sanitizer adds its own"))
        return;
    const char *machine = machine_of("kind n\n cores 2\n core memory 1GB/s\n core f32 1Gflop/s\n nodes 1 n\n");
    for (int i = 0; i < 2; i++) {
        char job[500];
        snprintf(job, sizeof job, "./fashion_mnist --data %s --batch %d --steps 4 --hidden %s", scratch, TRAIN_SAMPLES,
                 hidden[i]);
        text_of(run("TRAMA_WORKERS=2 %s", job));
        taken[i] = most_memory();
        const char *text = text_of(run("%s --rehearse %s", job, machine)), *at = strstr(text, "memory: ");
        ck_assert_msg(at != NULL, "%s", text);
        stated[i] = 1e6 * strtod(at + strlen("memory: "), NULL);
    }
    const double more = taken[1] - taken[0], says = stated[1] - stated[0];
    ck_assert_msg(says > 201e6 && fabs(more - says) <= 0.02 * says, "four layers take %g bytes, not %g", more, says);
}
END_TEST

/* A batch of 8 beside weights of 784x256: data parallel layouts exchange the weights. */
START_TEST(layouts_are_chosen_and_searched)
{
    const char *text = rehearse("--model mlp --hidden 256 --batch 8 --auto 4");
    static const char *const parts[] = {
        "layouts ",   "data parallel  dp=4", "split pairs    mp=4", "searched       dp=4", "searched       dp=2,mp=2",
        "  chosen\n", "4 ranks, 1 runs",     "time of a run: "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect(text, parts[i]);
    const char *line = strstr(text, "  chosen");
    while (line > text && line[-1] != '\n')
        line--;
    ck_assert_msg(!strncmp(line, "split pairs    mp=4", 19), "%s", text);
    double bytes[2];
    for (int searched = 0; searched < 2; searched++) {
        const char *at =
            strstr(rehearse(searched ? "--model gpt --mesh dp=2 --search" : "--model gpt --mesh dp=2"), ", of ");
        ck_assert_ptr_nonnull(at);
        bytes[searched] = strtod(at + strlen(", of "), NULL);
    }
    ck_assert_msg(bytes[1] < 0.7 * bytes[0], "%g MB, and %g without a search", bytes[1], bytes[0]);
}
END_TEST

/* Its figures are of the machine; that they are there, and that a rehearsal takes them, is not. */
START_TEST(a_machine_is_calibrated_and_rehearsed)
{
    const bool none = suite_skips(suite_stride() > 1, "calibrations, which a sanitizer slows down");
    for (int ranks = 1; ranks <= (TRAMA_HAVE_MPI ? 3 : 1) && !none; ranks += suite_is_long() ? 1 : 2) {
        char arguments[300];
        text_of(ranks == 1 ? run("./trama calibrate --quick --output %s/here", scratch)
                           : run(MPIRUN "%d ./trama calibrate --quick --output %s/here", ranks, scratch));
        const char *text = text_of(run("cat %s/here", scratch));
        static const char *const lines[] = {"\n  task ",          "\n  submit ",         "\n  feed ",
                                            "\n  op matmul f32 ", "\n  op matmul f64 ",  "\n  op matmul memory ",
                                            "\n  core memory ",   "\n  read ",           "\n  op own f32 ",
                                            "\n  op own f64 ",    "\n  op adam memory ", "\n  evict ",
                                            "\n  far ",           "\nnodes 1 here\n"};
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            expect(text, lines[i]);
        ck_assert_int_eq(contains(text, "\n  message "), ranks > 1);
        ck_assert_int_eq(contains(text, "\n  op message memory "), ranks > 1);
        snprintf(arguments, sizeof arguments, "--model mlp --mesh dp=%d --machine %s/here", ranks, scratch);
        char says[40];
        snprintf(says, sizeof says, "%d ranks, 1 runs", ranks);
        expect(rehearse(arguments), says);
    }
    run_wrong("trama calibrate", &(wrong_use){" --output /nowhere/at/all", "--output", "/nowhere/at/all"});
    run_wrong("trama calibrate", &(wrong_use){" something", "something", "options"});
}
END_TEST

TESTS(a_perceptron_takes_the_time_of_its_products, all_models_are_rehearsed_on_meshes, a_rehearsal_is_shown_as_a_run_is,
      orders_and_messages_without_length_are_shown, workers_are_named_by_their_kind,
      the_steps_of_all_ranks_are_written_for_others, a_topology_gives_cores_and_gpus,
      a_topology_that_cannot_be_read_is_named, a_rank_is_planned_alone, wrong_orders_are_named, examples_are_rehearsed,
      a_run_takes_the_memory_that_its_rehearsal_states, layouts_are_chosen_and_searched,
      a_machine_is_calibrated_and_rehearsed)
