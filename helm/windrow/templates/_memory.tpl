{{- /* Memory of a replica in MiB, bounded by its settings: `request` and `limit`.

An idle process takes 256 MiB; planning takes at most 512 bytes for each file of a plan, its
inventory included. Publishing takes the bodies of streams, and six times the decoded size. Heads of
requests, the first 64 KiB of each body and all other bodies are bounded too, and so is the growth of the process that reads footers: long footers
are read one at a time. The request covers only one plan at a time.
*/ -}}
{{- define "windrow.memory" -}}
{{- $limits := merge (dict) .Values.limits (dict
  "maxBodyBytes" 16777216
  "maxConnections" 500
  "maxHeadBytes" 65536
  "maxPlanFiles" 20000000
  "maxPublishBytes" 536870912
  "maxPublishDecodedBytes" 536870912
) -}}
{{- $threads := int64 .Values.plannerThreads -}}
{{- $idle := add 268435456 (int64 .Values.manifestCacheBytes) -}}
{{- $plan := mul 512 (int64 $limits.maxPlanFiles) -}}
{{- $published := add (int64 $limits.maxPublishBytes) (mul 6 (int64 $limits.maxPublishDecodedBytes)) -}}
{{- $heads := mul (int64 $limits.maxConnections) (add 65536 (int64 $limits.maxHeadBytes)) -}}
{{- $bodies := mul $threads (int64 $limits.maxBodyBytes) -}}
{{- $footers := 2147483648 -}}
{{- $request := add $idle $plan -}}
{{- $limit := add $idle (mul $threads $plan) $published $heads $bodies $footers -}}
request: {{ div (add $request 1048575) 1048576 }}Mi
limit: {{ div (add $limit 1048575) 1048576 }}Mi
{{- end -}}

{{- /* The given resources; if they name no memory, that which follows from the settings. */ -}}
{{- define "windrow.resources" -}}
{{- $given := default (dict) .Values.resources -}}
{{- $requests := default (dict) $given.requests -}}
{{- $limits := default (dict) $given.limits -}}
{{- if not (or (hasKey $requests "memory") (hasKey $limits "memory")) -}}
{{- $memory := include "windrow.memory" . | fromYaml -}}
{{- $requests = merge (dict "memory" $memory.request) $requests -}}
{{- $limits = merge (dict "memory" $memory.limit) $limits -}}
{{- end -}}
{{- dict "requests" $requests "limits" $limits | toYaml -}}
{{- end -}}
