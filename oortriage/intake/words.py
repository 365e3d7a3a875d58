"""Words that messages are made of, to tell a word cut in two from two words at a line break.

The pieces ``allo`` and ``cate`` are no words and together they are one, so a terminal cut it; ``is``
and ``larger`` are words and together they are none, so the break stands for a space. The list holds
the words that recur in the messages of the rules, and the commonest English ones. A word that is
missing costs nothing but that evidence.
"""

from __future__ import annotations

WORDS = frozenset(
    """
able aborted about above acceleratorerror access actor actual add additional address advice after again against
algorithm all alloc allocate allocated allocating allocation allocator allocs allow allowed allowing along already
also always among amount amounts an and another any api app application approximately are args argument arguments
array as asked assert assertion assertionerror async asynchronously at attempt attempted attempts attention attn
attribute auto autograd automatically autotuner autotuning available average avoid away back backend backends backward
bad balance based batch be because been before beginning behind being below benchmark best better between bfc bfloat
big bin binary bitsandbytes block blocks both bound broken budget buffer bug build built bus but by bytes cache cached
calculate calculated call called calledprocesserror calling came can cannot capability capable capacity capture
captured capturing card cards case caught cause causes change check child choice chunk chunked clean cleanup clear cli
client close code codegen collect com comes command commit common compilation compile compiled compiler complete
compute computed computing conda conf config configs configuration configured connected connection conserving consider
constraint container contains context control copied core cores corrupted could count cpp cpu crashed create created
creating creation critical cublas cuda cudacachingallocator cudadrv cudafuncsetattribute cudagetdevicecount cudamalloc
cumem current currently cut cutlass data dataloader day dead debug decode decoder decrease decreasing default deleted
dense depleted desired detail details detected determine determined dev device did died differ different dimension
dimensions directory disabled disk distributed do docker docs documentation does done down driver dropped dtype dtypes
due dump dumped during dynamic dynamo each early either else embedding empty enable enabled encoder encountered end
ending ends engine enginecore engines enough ensure entire environment err errno error errors estimated even event
ever every evictable exactly example exc exceed exceeded exceeds exception exceptions execute executed executing
execution executor exhausted exhaustion existing exit exitcode exited exits expandable expected expert experts
explicitly export extension external extra factor fail failed failure false far fast fatal few fewer figure file files
fill filled final finally find fine finish finished first fit fix flag flags flash flashinfer flex float following for
force forced foreignnode form format forward found fraction fragmentation framework free freed from full func function
functional functions further fused future garbage gb gemm generate generated generating generation generic get gets
ggml gib github give given gives global go goes got gpu gpus graph graphics graphs greater group grouped grown had
half handle handler hardware has have head heads heap help hence here hidden high higher hip hit hold holds hook hooks
host hosts hours how however html https hybrid idle if ignore ignored ignoring image images impl implementation import
impossible in inadequate include included includes including incorrect increase increasing index indices inductor info
information init initial initialization initialize initialized initializing inner input inside install installed
instance instead insufficient int internal internalerror into invalid is issue issues it items its itself jax jaxlib
jaxruntimeerror jit job jobs join joined json just kb keep keeps kept kernel kernels keys keyword kib kill killed
killer kind kinds know known kv kwargs labels lack language large larger last later latest launch launched launcher
launching layer layers leads leak least left len length lengths less let level lib library like limit limitation
limits line linear lines list lists little llama llm load loading local localhost lock log logs long longer longest
look loop loops loss lost lot low lower lowest made main make makes malloc mamba managed management manager managers
manual many maps mask match matched matmul max maximum may mb means measure mem memory memoryerror message messages
method metrics mib might minimum minutes misc missing mixed mma mmap mode model models modes module modules moe more
most move moved mps much multimodal multiple multiproc multiprocessing must name names native nccl near need needed
needs never new next no node nodes non none nor normal not note notes nothing now null num numba number numcudadevices
nvidia nvrm object occupied occurred of off offload offset offsets old older on once one only oom open operation
operations operator option optional options or order ordinal org original oserror other others otherwise our out outer
outofmemory outofmemoryerror outofresources outside over overall overhead override own pack package packages page
pages pairs parallel param parameter parameters params parse parsed part particular pass passed past path paths pci
peer pending per performance permanent phase physical pick pid pieces pinned place places plan plans please pod point
policy pool position possible pre precision prefill prefix prepare present preserve pressure prevent previous primary
print printed priority private probably problem proc process processed processes processgroupnccl processing profile
profiler profiling program programs progress projection prompt protected provide provided ptr ptx ptxas ptxaserror put
python pytorch queue queued queues quit quite raise raised ram ran range ranges rank rates rather ratio ray reach
reached read reads ready real reallocate reason received recent recommended recompile record recover recovered reduce
reducing reduction refused region register registered registers related relative release released remain remaining
remains remote remove removed repeat replace replica report reported reporting req reqs request requested requests
required requires reserve reserved reset resolve resource resources respect response restart result results retract
retries retry returned returning returns reuse right rocm root rows rule rules run runner runners running runs runtime
runtimeerror safe said same sample sampler samples sampling say says scale scheduled scheduler scheduling score script
scripts search second seconds section see seem seen segment segments select selected self send separate seq seqs
sequence sequences serial serve served server servers services serving session set sets setting setup several sglang
shape shards shared shell shm shmem shmutils short should shows shut shutdown shutting side sides sigkill signal
signals sigquit similar simple since single size sizes skipping slice slot slots slow slurmstepd small smaller smem so
socket softmax some soon sources space spaces spawn specific specified speculative spill split src stable stack
stacktrace stage stages standard start started starting starts startup state statement states static stats status std
stderr step still stop stopped stopping storage stored strategy stream streams strict string strings structure
subprocess subset success successfully such sufficient suggested sum support supported supports sure swap symbol
synchronize system table tables tactic take taken takes target task tasks tell temporary tensor tensorflow tensorrt
tensors terminal terminate terminated test tests text texts than that thc thcudacheck the their them then there these
they thing thinking third this those thread threads three threshold through throughput throwing thus time timed times
tllmbuffers tmp to together token tokens too took tool tools torch torchrun total tpu trace traceback traced tracker
train trainer training transfer transform transformer transformers tried trigger triggered triton trt true truncated
try trying tuned tuning turn two type types typically unable unallocated unavailable under unexpected unexpectedly
unhandled unified unique unit units unknown unless unload unmap unsupported until up update updated upon upper us
usage use used user userwarning uses using utilization utils valid value valueerror values variable variant vector
vendor verify version versions very video view virtual visible vision vllm vllmworker vocab void vram vulkan wait
waited waits walk want wanted warmup warn warning warnings warps was way we weights well were what when where whether
which while who whole why wide width will windows wished with within without word work worked worker workerdict
workers works workspace would wrapped wrapper write writes writing written wrong xid xla xlaruntimeerror year years
yet yield you your zero
""".split()
)
