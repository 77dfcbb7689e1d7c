"""
Names in ads that some part of the system reads or writes; no running job sets them. `chirp_updates.py` has families of names too.
"""

from typing import Final

ACTED_ON: Final = frozenset({
    "account", "activity", "allocated", "arch", "authorization", "available", "busy", "by", "capability", "child",
    "childactivity", "childname", "childremoteuser", "childstate", "classadlifetime", "cleaning", "clientmachine",
    "clockday", "clockmin", "cluster", "cmd", "code", "complete", "condorloadavg", "consoleidle", "coresize", "cpus",
    "currentrank", "daemonstarttime", "date", "detectedcpus", "detectedmemory", "devicename", "devicepcibusid",
    "disk", "diskusage", "drainingrequestid", "drainreason", "driverversion", "dslotid", "dynamic", "dynamicslot",
    "emailattributes", "enteredcurrentactivity", "enteredcurrentstate", "err", "etag", "eventtime", "eventtypenumber",
    "executablesize", "fd",
    "filesystemdomain", "fnx", "fp", "from", "globalmemorymb", "gpus", "groupquota", "groupresourcesallocated",
    "groupresourcesinuse", "hasbubblewrap", "hascontainer", "hascrun", "hasdocker", "hasdockerengine",
    "hasdockerurl", "hasfiletransfer", "hasfiletransferpluginmethods", "hasjobdeferral", "hasjobtransferplugins", "hasmountunderscratch",
    "hasperfileencryption", "haspodman", "hasrunc", "hassandboximage", "hasselfcheckpointtransfers", "hassif",
    "held", "htcondor", "id", "idle", "in", "incomplete", "inputbytesfetched", "inputbytesfromstore", "inputcachebytes",
    "inputcachefiles", "inputcachehits", "inputfilesfetched", "it", "item", "iwd", "job", "jobbatchid",
    "jobbatchname", "jobdescription", "jobmaxretries", "jobmaxvacatetime", "jobsetid", "jobsetname", "jobsidle",
    "jobsrunning", "jobstart",
    "jobsubmitmethod", "jobsuccessexitcode", "keyboardidle", "last", "lastheardfrom", "lastnegotiationcycle",
    "leavejobinqueue", "limitdirectoryaccess", "loadavg", "local", "localfilename", "machine", "machinemaxvacatetime",
    "maxjobretirementtime", "maxtransferinputmb", "maxtransferoutputmb", "memory", "memoryusage", "model",
    "mountunderscratch", "multiplefilesupport", "mycurrenttime", "name", "nan", "niceuser", "numclaims",
    "numdynamicslots", "numrestarts", "numusers", "offline", "opsys", "opsysandver", "opsyslongname",
    "opsysmajorver", "opsysname", "opsysshortname", "out", "outputdestination", "parentslotid", "partitionable",
    "partitionableslot", "pausecode", "paused", "plugintype", "publicinputfiles", "range", "residentsetsize", "resource", "resources",
    "retiring", "scheddinterval", "scheduler", "services", "servicessharedwith", "shouldtransferfiles", "stageinfinish", "stageinstart", "stageoutfinish", "stageoutstart", "start", "startdaemon", "startdname", "state",
    "static", "status", "submittedbytoken", "stream", "streamerr", "streamout", "subcode", "subject",
    "sum", "supportedmethods", "tag", "to", "total",
    "totalcondorloadavg", "totalheldjobs", "totalidlejobs", "totaljobruntime", "totaljobsuspendtime",
    "totalflockedjobs", "triggereventtypename", "triggereventtypenumber", "totalloadavg", "totalremovedjobs", "totalrunningjobs", "totalslot", "totalslotavailable", "totalslots",
    "uiddomain", "unclaimed", "unconfirmedreports", "updatesequencenumber", "url", "userpreemption", "vacating", "value", "volumes", "whentotransferoutput",
    "withinresourcelimits",
    "cudaversion", "eraseoutputanderroronrestart", "gpusmaxcapability", "gpusmincapability", "gpusminmemory",
    "gpusminruntime", "isnoopjob", "jobmachineattrs", "jobmachineattrshistorylength", "jobstarterdebug",
    "jobstarterlog", "keepclaimidle", "lastmatchlistlength", "lastmatchname", "machineattr", "max", "manifestdesired", "manifestdir", "maxsupportedversion",
    "maxrequestmemory", "next", "nextjobstartdelay", "nextrequestmemory", "noopjobexitcode", "noopjobexitsignal",
    "outputdirectory", "retry", "retryrequestmemory", "runasowner", "skipifdataflow", "stacksize", "streamin",
    "awaitsroute", "batchextrasubmitargs", "batchextrasubmitargsareown", "batchproject", "batchqueue", "batchruntime", "gridresource", "jobfailuretest",
    "onlocalremove", "onlocalremoveretries",
    "commoninputfiles", "dagnodename", "failurefiles", "islinux", "iswindows", "jobaccount", "otherjobremoverequirements", "suspendjobatexec", "recentdaemoncoredutycycle", "startd",
    "jobrequiressandbox", "machinecount", "nodecount", "parallelhosts", "parallelschedulinggroup", "parallelshutdownpolicy",
    "canhibernate", "computeentrypoint", "entrypointvos", "keepoutputsonmachine", "keptoutputsof", "totalroutedjobs", "totalunroutedjobs",
    "returnvalue", "scitokensfile", "terminatedbysignal", "timetolive", "tryingcontainers",
})  # fmt: skip
"""In lower case. Some are only words in the code, which a job does not need."""
