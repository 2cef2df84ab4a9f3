/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of Trama loads a plugin that does, lets it begin work, and unloads it in the middle of
 * that: twice, since nothing may stay behind. Usage: plugin_host PLUGIN */
#include <dlfcn.h>
#include <stdio.h>

enum { ROUNDS = 2 };

/* Of this process, as the kernel counts them. */
static int threads(void)
{
    char line[200];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

static int run_and_unload(const char *path)
{
    int (*begin)(void);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&begin = dlsym(plugin, "plugin_begin");
    if (!begin || begin())
        return 1;
    dlclose(plugin);
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
        fprintf(stderr, "the plugin is still there\n");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const int before = threads();
    for (int i = 0; i < ROUNDS; i++) {
        if (argc != 2 || run_and_unload(argv[1]))
            return 1;
        if (threads() != before) {
            fprintf(stderr, "%d threads are left of round %d, and there were %d\n", threads(), i, before);
            return 1;
        }
    }
    return 0;
}
