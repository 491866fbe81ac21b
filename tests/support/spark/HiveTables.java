import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.ValidReadTxnList;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.FileSinkOperator;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.AcidOutputFormat;
import org.apache.hadoop.hive.ql.io.AcidUtils;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;
import org.apache.hadoop.hive.ql.io.RecordUpdater;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.serde2.SerDeUtils;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.Reporter;

/** Transactional tables, written, compacted and read by Hive's own classes from PySpark's jars. */
public final class HiveTables {
    private static final String ID = "struct<transactionid:bigint,bucketid:int,rowid:bigint>";

    private final Configuration configuration = new Configuration();
    private FileSystem files;
    private Path folder;
    private ObjectInspector rows;
    private String[] types;

    /** Opens the table in a folder; column names are separated by commas, types by colons. */
    public HiveTables open(String folder, String names, String types) throws Exception {
        HiveTables table = new HiveTables();
        new java.io.File(folder.substring("file://".length())).mkdirs();
        table.folder = new Path(folder);
        table.files = table.folder.getFileSystem(table.configuration);
        table.types = types.split(":");
        String[] name = names.split(",");
        StringBuffer text = new StringBuffer("struct<");
        for (int at = 0; at < name.length; at++) {
            text.append(name[at] + ":" + table.types[at] + ",");
        }
        table.rows = TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(
            TypeInfoUtils.getTypeInfoFromTypeString(text + "row__id:" + ID + ">"));
        AcidUtils.setAcidOperationalProperties(
            table.configuration, AcidUtils.AcidOperationalProperties.getDefault());
        table.configuration.set("schema.evolution.columns", names);
        table.configuration.set("schema.evolution.columns.types", types);
        table.configuration.setBoolean("transactional", true);
        return table;
    }

    /**
     * Writes the events of one statement in one bucket.
     *
     * An event is a line of fields separated by tabs: `insert`, `update` or `delete`; the row's id,
     * as three numbers separated by commas, or empty for an insert; then the values.
     */
    public void write(long transaction, int statement, int bucket, String events) throws Exception {
        RecordUpdater updater = new OrcOutputFormat().getRecordUpdater(folder, options(bucket)
            .minimumTransactionId(transaction).maximumTransactionId(transaction)
            .statementId(statement).inspector(rows).recordIdColumn(types.length));
        String[] lines = events.split("\n");
        for (int at = 0; at < lines.length; at++) {
            String[] fields = lines[at].split("\t", -1);
            List row = new ArrayList();
            for (int column = 0; column < types.length; column++) {
                row.add(fields.length > 2 ? value(fields[2 + column], types[column]) : null);
            }
            row.add(fields[1].isEmpty() ? null : id(fields[1].split(",")));
            if (fields[0].equals("insert")) updater.insert(transaction, row);
            else if (fields[0].equals("update")) updater.update(transaction, row);
            else updater.delete(transaction, row);
        }
        updater.close(false);
    }

    private static List id(String[] numbers) {
        List id = new ArrayList();
        id.add(Long.valueOf(numbers[0]));
        id.add(Integer.valueOf(numbers[1]));
        id.add(Long.valueOf(numbers[2]));
        return id;
    }

    private static Object value(String text, String type) {
        if (text.equals("null")) return null;
        if (type.equals("int")) return Integer.valueOf(text);
        if (type.equals("bigint")) return Long.valueOf(text);
        if (type.equals("timestamp")) return java.sql.Timestamp.valueOf(text);
        if (type.startsWith("decimal")) return HiveDecimal.create(text);
        return text;
    }

    /** Merges the files of transactions; major compactions drop deleted rows. */
    public void compact(String valid, int buckets, boolean major) throws Exception {
        ValidReadTxnList transactions = new ValidReadTxnList(valid);
        AcidUtils.Directory found =
            AcidUtils.getAcidState(folder, configuration, transactions, false, true);
        List deltas = found.getCurrentDirectories();
        if (deltas.isEmpty()) return;
        long least = Long.MAX_VALUE;
        long most = 0;
        for (int at = 0; at < deltas.size(); at++) {
            AcidUtils.ParsedDelta delta = (AcidUtils.ParsedDelta) deltas.get(at);
            least = Math.min(least, delta.getMinTransaction());
            most = Math.max(most, delta.getMaxTransaction());
        }
        Path out = new Path(folder, "_tmp_compaction");
        for (int at = 0; at < buckets; at++) {
            AcidInputFormat.RawReader reader = new OrcInputFormat().getRawReader(
                configuration, major, at, transactions,
                major ? base(found) : null, AcidUtils.getPaths(deltas));
            AcidOutputFormat.Options options = options(at)
                .inspector(reader.getObjectInspector()).writingBase(major).isCompressed(false)
                .minimumTransactionId(least).maximumTransactionId(most).statementId(-1);
            FileSinkOperator.RecordWriter kept =
                new OrcOutputFormat().getRawRecordWriter(out, options);
            FileSinkOperator.RecordWriter gone = null;
            if (!major) {
                gone = new OrcOutputFormat().getRawRecordWriter(
                    out, options.clone().writingDeleteDelta(true));
            }
            RecordIdentifier id = (RecordIdentifier) reader.createKey();
            Object event = reader.createValue();
            while (reader.next(id, event)) {
                if (!reader.isDelete((OrcStruct) event)) kept.write((OrcStruct) event);
                else if (!major) gone.write((OrcStruct) event);
            }
            reader.close();
            kept.close(false);
            if (gone != null) gone.close(false);
        }
        org.apache.hadoop.fs.FileStatus[] made = files.listStatus(out);
        for (int at = 0; at < made.length; at++) {
            Path path = made[at].getPath();
            Path target = new Path(folder, path.getName());
            // The marker of the format's version exists already, and so may the result of another
            // compaction of the same range.
            if (!files.exists(target)) files.rename(path, target);
        }
        files.delete(out, true);
    }

    /** Removes files and folders that compactions made obsolete. */
    public void clean(String valid) throws Exception {
        List obsolete = AcidUtils.getAcidState(
            folder, configuration, new ValidReadTxnList(valid), false, true).getObsolete();
        for (int at = 0; at < obsolete.size(); at++) {
            files.delete(((org.apache.hadoop.fs.FileStatus) obsolete.get(at)).getPath(), true);
        }
    }

    /** Returns the names of the folders and files that hold the rows of some transactions. */
    public String state(String valid) throws Exception {
        AcidUtils.Directory found = AcidUtils.getAcidState(
            folder, configuration, new ValidReadTxnList(valid), false, true);
        StringBuffer names = new StringBuffer();
        if (found.getBaseDirectory() != null) names.append(found.getBaseDirectory().getName());
        List deltas = found.getCurrentDirectories();
        for (int at = 0; at < deltas.size(); at++) {
            Path path = ((AcidUtils.ParsedDelta) deltas.get(at)).getPath();
            names.append(" " + path.getName());
        }
        names.append(" originals " + found.getOriginalFiles().size());
        return names.toString().trim();
    }

    /** Returns the rows of some buckets as JSON lines: row id, tab, row. */
    public String read(String valid, int buckets) throws Exception {
        ValidReadTxnList transactions = new ValidReadTxnList(valid);
        AcidUtils.Directory found =
            AcidUtils.getAcidState(folder, configuration, transactions, false, true);
        StringBuffer text = new StringBuffer();
        for (int at = 0; at < buckets; at++) {
            AcidInputFormat.RawReader reader = new OrcInputFormat().getRawReader(
                configuration, true, at, transactions, base(found),
                AcidUtils.getPaths(found.getCurrentDirectories()));
            StructObjectInspector inspector = (StructObjectInspector) reader.getObjectInspector();
            RecordIdentifier id = (RecordIdentifier) reader.createKey();
            Object event = reader.createValue();
            while (reader.next(id, event)) {
                if (reader.isDelete((OrcStruct) event)) continue;
                Object row = inspector.getStructFieldData(event, inspector.getStructFieldRef("row"));
                text.append(id.getTransactionId() + "," + id.getBucketId() + "," + id.getRowId() + "\t"
                    + SerDeUtils.getJSONString(
                        row, inspector.getStructFieldRef("row").getFieldObjectInspector()) + "\n");
            }
            reader.close();
        }
        return text.toString();
    }

    private Path base(AcidUtils.Directory found) {
        if (found.getBaseDirectory() != null) return found.getBaseDirectory();
        return found.getOriginalFiles().isEmpty() ? null : folder;
    }

    private AcidOutputFormat.Options options(int bucket) {
        return new AcidOutputFormat.Options(configuration).filesystem(files).bucket(bucket)
            .writingBase(false).reporter(Reporter.NULL).finalDestination(folder);
    }
}
