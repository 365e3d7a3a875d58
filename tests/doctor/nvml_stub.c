/* A libnvidia-ml that answers what the doctor asks, for one process: two healthy cards. Built by a test.
   It writes through every address that it is given, as NVIDIA's does. */
#include <string.h>

typedef int R;
typedef void *D;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct {
  char legacy[16];
  unsigned int domain, bus, device, id, subsystem;
  char busId[32];
} Pci;
typedef struct { unsigned char cluster[16]; unsigned int status, clique, state; } Fabric;

static int card[2];
#define NUMBER(device) ((int)((int *)(device) - card))
#define GIB (1ULL << 30)

R nvmlInitWithFlags(unsigned int f) { return 0; }
R nvmlInit_v2(void) { return 0; }
R nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(R r) { return "an error of the stub"; }
R nvmlDeviceGetCount_v2(unsigned int *n) { *n = 2; return 0; }
R nvmlDeviceGetHandleByIndex_v2(unsigned int i, D *d) { *d = &card[i]; return 0; }
R nvmlSystemGetDriverVersion(char *s, unsigned int n) { strncpy(s, "580.159.04", n); return 0; }
R nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return 0; }
R nvmlDeviceGetName(D d, char *s, unsigned int n) { strncpy(s, "NVIDIA H200", n); return 0; }
R nvmlDeviceGetUUID(D d, char *s, unsigned int n) { strncpy(s, NUMBER(d) ? "GPU-1" : "GPU-0", n); return 0; }
R nvmlDeviceGetCudaComputeCapability(D d, int *a, int *b) { *a = 9; *b = 0; return 0; }
R nvmlDeviceGetMemoryInfo(D d, Memory *m) { m->total = 140 * GIB; m->used = GIB; m->free = 139 * GIB; return 0; }
R nvmlDeviceGetMemoryInfo_v2(D d, Memory2 *m) {
  if (m->version != 0x02000028) return 25;
  m->total = 140 * GIB; m->reserved = GIB / 2; m->used = GIB / 2; m->free = 139 * GIB;
  return 0;
}
R nvmlDeviceGetMigMode(D d, unsigned int *a, unsigned int *b) { *a = *b = 0; return 0; }
R nvmlDeviceGetComputeRunningProcesses_v3(D d, unsigned int *n, void *p) { *n = 0; return 0; }
R nvmlDeviceGetGraphicsRunningProcesses_v3(D d, unsigned int *n, void *p) { *n = 0; return 0; }
R nvmlDeviceGetMPSComputeRunningProcesses_v3(D d, unsigned int *n, void *p) { *n = 0; return 0; }
R nvmlDeviceGetPersistenceMode(D d, unsigned int *m) { *m = 1; return 0; }
R nvmlDeviceGetComputeMode(D d, unsigned int *m) { *m = 0; return 0; }
R nvmlDeviceGetEccMode(D d, unsigned int *a, unsigned int *b) { *a = *b = 1; return 0; }
R nvmlDeviceGetTotalEccErrors(D d, unsigned int kind, unsigned int counter, unsigned long long *n) {
  *n = kind == 1 && counter == 1 ? 3 : 0;
  return 0;
}
R nvmlDeviceGetRemappedRows(D d, unsigned int *c, unsigned int *u, unsigned int *p, unsigned int *f) {
  *c = 1; *u = 2; *p = *f = 0;
  return 0;
}
R nvmlDeviceGetRetiredPages(D d, unsigned int cause, unsigned int *n, unsigned long long *pages) { return 3; }
R nvmlDeviceGetRetiredPagesPendingStatus(D d, unsigned int *p) { return 3; }
R nvmlDeviceGetP2PStatus(D a, D b, unsigned int index, unsigned int *status) { *status = index ? 0 : 1; return 0; }
R nvmlDeviceGetPciInfo_v3(D d, Pci *p) { strcpy(p->busId, NUMBER(d) ? "00000000:0C:00.0" : "00000000:0B:00.0"); return 0; }
R nvmlDeviceGetGpuFabricInfo(D d, Fabric *f) {
#ifdef FALL
  *(volatile int *)0 = 1;
#endif
  f->state = 3;
  return 0;
}
