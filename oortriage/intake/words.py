"""Words that messages are made of, to tell a word cut in two from two words at a line break.

The pieces ``allo`` and ``cate`` are no words and together they are one, so a terminal cut it; ``is``
and ``larger`` are words and together they are none, so the break stands for a space. The list holds
the words that recur in the messages of the rules, and the commonest English ones. A word that is
missing costs nothing but that evidence.
"""

from __future__ import annotations

WORDS = frozenset(
    """
able aborted about above acceleratorerror access actor add address after again against algorithm all alloc allocate
allocated allocating allocation allocator allow allowed along already also always among amount an and another any api
app are argument as asked assert assertion assertionerror async asynchronously at attempt attempted attention attn
attribute auto autotuning available avoid away back backend backward bad batch be because been before being below
benchmark best better between bfc bfloat big bin binary bitsandbytes block blocks both budget buffer bug build bus but
by bytes cache call called calledprocesserror calling came can cannot capability capable capacity capture case cause
change check child choice clear cli client close code codegen com comes command commit common compilation compile
compiler complete compute conda conf config configs configuration connection conserving consider constraint container
contains context control core could count cpp cpu crashed create created creating creation critical cublas cuda
cudacachingallocator cudadrv cudafuncsetattribute cudagetdevicecount cudamalloc cumem current currently cut cutlass
data dataloader day dead debug decode decrease decreasing default depleted desired details detected dev device did
died different directory distributed do docker docs documentation does done down driver dtype due dumped during
dynamic each early either else empty enable enabled encountered end ending ends engine enginecore enough environment
err errno error errors estimated even ever every evictable exc exceed exceeded exceeds exception exceptions execution
executor exhausted exhaustion exit exitcode exited exits expandable extension external fail failed failure false far
fatal few file find fine finished first fit fix flag flash flashinfer flex float following for foreignnode forward
found fraction fragmentation framework free from full func function functions fused gb gemm generated generation
generic get gets ggml gib github give given gives global go goes got gpu gpus graph graphics graphs greater group
grouped had half handle handler hardware has have head heap help hence here high higher hip hit hold host how however
html https idle if ignoring impl implementation impossible in inadequate include incorrect increase increasing
inductor info information init initial initialization initialize initializing input instance instead insufficient int
internal internalerror into invalid is issue issues it its itself jax jaxlib jaxruntimeerror jit job json just kb keep
kernel kernels kib kill killed killer kind know known kv lack large larger last later latest launch launcher leak
least left len length less let level lib library like limit line list little llama llm load loading local localhost
log logs long longer look lot low lower made main make makes malloc mamba management manager many matmul max maximum
may mb means mem memory memoryerror message messages method mib might minimum misc mma mmap mode model models module
moe more most move mps much multimodal multiproc multiprocessing must name native nccl near need needs never new next
no node non none nor not note nothing now null num numba number numcudadevices nvidia nvrm object of off old on once
one only oom open operation or order ordinal org original oserror other our out outofmemory outofmemoryerror
outofresources over own page parallel part pass past path pci per performance permanent physical pid pinned place
please pod point pool possible pre prefill private proc process processes processgroupnccl profiling program prompt
ptr ptx ptxas ptxaserror put python pytorch quite raise raised ram ran range rank rather ratio ray read ready real
reallocate reason received recent reduce reducing refused register registers release replica report reported req reqs
request requested requests required requires reserve reserved resource resources result results retract retry returned
right rocm root run runner running runs runtime runtimeerror said same say says scheduler score search second see seem
seen segment segments select self send seq seqs sequence serve server serving set setting several shape shared shm
shmem shmutils short should shows shutdown shutting side sigkill signal sigquit since single size sizes skipping slice
slots slow slurmstepd small smaller smem so socket softmax some soon space spawn specified split src stable stack
stacktrace stages start started startup state static status std stderr step still stop stopped stream subprocess such
sufficient support supported swap system tactic take taken takes target task tell tensor tensorflow tensorrt terminate
terminated test text than that thc thcudacheck the their them then there these they thing third this those thread
threads three through throwing thus tile time timed times tllmbuffers tmp to token tokens too took torch total tpu
trace traceback train tried triton trt true try trying turn two type unable unallocated unavailable under unexpected
unexpectedly unhandled unit unknown unless unsupported until up update upon us usage use used user userwarning uses
using usr utilization utils valid value valueerror variable version very video virtual vllm vllmworker void vram
vulkan wait want warmup warn warning warps was way we weights well were what when where whether which while who why
wide will with within without word work worked worker workerdict works workspace would write wrong xid xla
xlaruntimeerror year yet you your zero
""".split()
)
