{{- define "windrow.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "windrow.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "windrow.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "windrow.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{- /* Labels of every object; the includer adds the component. */ -}}
{{- define "windrow.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* Labels that never change, and that only the coordinator's pods have. */ -}}
{{- define "windrow.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: coordinator
{{- end -}}

{{- /* Settings of every pod of the chart. */ -}}
{{- define "windrow.podBasics" -}}
automountServiceAccountToken: false
# Otherwise a Service called windrow would set WINDROW_PORT to tcp://….
enableServiceLinks: false
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .Values.runAs.user }}
  runAsUser: {{ int64 . }}
  {{- end }}
  {{- with .Values.runAs.group }}
  runAsGroup: {{ int64 . }}
  {{- end }}
  {{- with .Values.runAs.supplementalGroups }}
  supplementalGroups:
    {{- range . }}
    - {{ int64 . }}
    {{- end }}
  {{- end }}
  {{- if and (or .Values.embedded.enabled .writesVolume) .Values.runAs.group }}
  # Only for volumes that are written: elsewhere it would change the group of every file of the tables.
  fsGroup: {{ int64 .Values.runAs.group }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- /* Settings of every container of the chart. */ -}}
{{- define "windrow.containerBasics" -}}
image: {{ include "windrow.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{ include "windrow.containerSecurity" . }}
{{- end -}}

{{- define "windrow.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "windrow.databaseEnv" -}}
- name: WINDROW_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.secretName }}
      key: {{ .Values.database.key | quote }}
{{- end -}}
