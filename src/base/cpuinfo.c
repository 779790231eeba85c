#include "cpuinfo.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "logging.h"
#include "thread_state.h"

static tmi_cpuinfo info;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *const isa_names[TMI_ISA_COUNT] = {"scalar", "avx2", "avx512", "neon"};

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct regs { uint32_t a, b, c, d; } regs;

static regs cpuid(uint32_t leaf, uint32_t sub)
{
    regs r = {0};
    __get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d);
    return r;
}

static uint64_t saved_state(void)
{   /* XCR0: which register files the operating system keeps across a switch */
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static bool bit(uint32_t word, int i) { return word >> i & 1; }

/* Linux hands out AMX tile state on request only (arch_prctl ARCH_REQ_XCOMP_PERM for feature 18). */
static bool request_tiles(void)
{
    enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0;
}

static void detect_features(tmi_cpuinfo *c)
{
    regs one = cpuid(1, 0), seven = cpuid(7, 0), seven1 = cpuid(7, 1);
    if (!bit(one.c, 27)) return;   /* OSXSAVE */
    uint64_t xcr0 = saved_state();
    bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xe6) == 0xe6, tiles = (xcr0 & 0x60000) == 0x60000;
    c->fma = ymm && bit(one.c, 12);
    c->f16c = ymm && bit(one.c, 29);
    c->avx2 = ymm && bit(seven.b, 5);
    c->avx_vnni = ymm && bit(seven1.a, 4);
    c->avx512 = zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 28) && bit(seven.b, 30) && bit(seven.b, 31);
    c->avx512_vnni = c->avx512 && bit(seven.c, 11);
    c->avx512_fp16 = c->avx512 && bit(seven.d, 23);
    c->avx512_bf16 = c->avx512 && bit(seven1.a, 5);
    c->amx_tile = tiles && bit(seven.d, 24) && request_tiles();
    c->amx_bf16 = c->amx_tile && bit(seven.d, 22);
    c->amx_int8 = c->amx_tile && bit(seven.d, 25);
    bool bmi2 = bit(seven.b, 8);
    if (c->avx2 && c->fma && c->f16c && bmi2) c->best = c->avx512 ? TMI_ISA_AVX512 : TMI_ISA_AVX2;
}
#elif defined(__aarch64__)
static void detect_features(tmi_cpuinfo *c) { c->best = TMI_ISA_NEON; }
#else
static void detect_features(tmi_cpuinfo *c) { (void)c; }
#endif

static bool read_line(const char *path, char *buf, int n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(buf, n, f) != NULL;
    fclose(f);
    return ok;
}

/* ---- cache sizes */

static void detect_caches(tmi_cpuinfo *c)
{
    c->l1d = 32 << 10, c->l2 = 512 << 10, c->l3 = 8 << 20;
    for (int i = 0; i < 8; i++) {
        char path[96], level[16], type[32], size[32];
        const char *base = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%d/level", base, i);
        if (!read_line(path, level, sizeof level)) break;
        snprintf(path, sizeof path, "%s%d/type", base, i);
        if (!read_line(path, type, sizeof type) || type[0] == 'I') continue;
        snprintf(path, sizeof path, "%s%d/size", base, i);
        if (!read_line(path, size, sizeof size)) continue;
        char *unit;
        int64_t bytes = strtoll(size, &unit, 10);
        bytes <<= *unit == 'M' ? 20 : *unit == 'K' ? 10 : 0;
        if (bytes > 0) *(level[0] == '1' ? &c->l1d : level[0] == '2' ? &c->l2 : &c->l3) = bytes;
    }
}

/* ---- usable CPUs: affinity mask, then the tightest quota on the way from our control group to the root */

static int affinity_count(void)
{
    for (int n = 1024; n <= 1 << 18; n *= 4) {
        cpu_set_t *set = CPU_ALLOC(n);
        if (!set) break;
        int got = sched_getaffinity(0, CPU_ALLOC_SIZE(n), set) == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE(n), set) : 0;
        CPU_FREE(set);
        if (got > 0) return got;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* CPUs that `dir` grants, rounded up; 0: no limit there. v2 has "max 100000" or "150000 100000" in cpu.max, v1 two files. */
static int quota_in(const char *dir)
{
    char path[512], line[64];
    long long quota = -1, period = 100000;
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    if (read_line(path, line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &quota, &period) < 1) return 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
        if (!read_line(path, line, sizeof line)) return 0;
        quota = atoll(line);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
        if (read_line(path, line, sizeof line)) period = atoll(line);
    }
    if (quota <= 0 || period <= 0) return 0;
    long long cpus = (quota + period - 1) / period;
    return cpus > 1 << 20 ? 0 : (int)cpus;
}

static int quota_along(const char *root, char *group)
{
    int best = 0;
    for (;;) {
        char dir[400];
        snprintf(dir, sizeof dir, "%s%s", root, group);
        int q = quota_in(dir);
        if (q && (!best || q < best)) best = q;
        char *slash = strrchr(group, '/');
        if (!slash) return best;
        *slash = 0;
    }
}

static int quota_count(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return 0;
    char line[384];
    int best = 0;
    while (fgets(line, sizeof line, f)) {   /* "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1) */
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        bool v2 = controllers[1] == 0;
        if (!v2 && !strstr(controllers, "cpu")) continue;
        int q = quota_along(v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", group);
        if (q && (!best || q < best)) best = q;
    }
    fclose(f);
    return best;
}

static void choose_level(tmi_cpuinfo *c)
{
    c->isa = c->best;
    const char *want = getenv("TAIMATSU_CPU");
    if (!want || !*want) return;
    for (int i = 0; i < TMI_ISA_COUNT; i++) {
        if (strcmp(want, isa_names[i])) continue;
        bool x86_level = i == TMI_ISA_AVX2 || i == TMI_ISA_AVX512, have_x86 = c->best == TMI_ISA_AVX2 || c->best == TMI_ISA_AVX512;
        if (i == TMI_ISA_SCALAR || i == (int)c->best || (x86_level && have_x86 && i < (int)c->best)) c->isa = (tmi_isa)i;
        else tmi_log(TMI_LOG_WARN, "TAIMATSU_CPU=%s is not available on this machine; using %s", want, isa_names[c->best]);
        return;
    }
    tmi_log(TMI_LOG_WARN, "TAIMATSU_CPU=%s is none of scalar, avx2, avx512, neon; using %s", want, isa_names[c->best]);
}

static void detect(void)
{
    info.best = TMI_ISA_SCALAR;
    detect_features(&info);
    detect_caches(&info);
    int cpus = affinity_count(), quota = quota_count();
    info.cpus = quota && quota < cpus ? quota : cpus;
    choose_level(&info);
}

const tmi_cpuinfo *tmi_cpu(void)
{
    pthread_once(&once, detect);
    return &info;
}

const char *tmi_isa_name(tmi_isa isa) { return (unsigned)isa < TMI_ISA_COUNT ? isa_names[isa] : "unknown"; }

/* ---- denormals */

bool tmi_apply_flush_denormal(bool on)
{
#if defined(__x86_64__)
    enum { FTZ_AND_DAZ = 0x8040 };
    unsigned csr = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? csr | FTZ_AND_DAZ : csr & ~(unsigned)FTZ_AND_DAZ);
    return true;
#elif defined(__aarch64__)
    uint64_t fpcr, fz = UINT64_C(1) << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(on ? fpcr | fz : fpcr & ~fz));
    return true;
#else
    return !on;
#endif
}

bool tm_set_flush_denormal(bool on)
{
    if (!tmi_apply_flush_denormal(on)) return false;
    tmi_tls.flush_denormal = on;
    return true;
}
